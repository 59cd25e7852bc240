import itertools
import json

import click
from cli.program import ANSWER, Uwf
from click.testing import CliRunner

from uwf_git.cli.thread.run import DriveOptions, drive_options


def test_pause_ends_the_run_in_order(uwf: Uwf) -> None:
    thread = uwf.stepped()
    pause = f"uwf thread pause $UWF_THREAD_ID >/dev/null; {ANSWER}"

    ran = uwf("thread", "run", thread, "--agent", uwf.agent(pause, name="pausing"))

    document = json.loads(ran.out)
    assert (ran.status, document["stopped"], document["status"]) == (0, "paused", "paused")
    assert (document["role"], document["steps"]) == ("checker", 1)
    uwf("thread", "run", thread).refused(1, f"hint: `uwf thread resume {thread}` lets it go on")


def test_killed_thread_is_reported_with_status_one(uwf: Uwf, thread: str) -> None:
    kill = "setsid uwf thread kill $UWF_THREAD_ID -m 'of no use' >/dev/null & sleep 60"

    ran = uwf("thread", "run", thread, "--agent", uwf.agent(kill, name="killing"))

    document = json.loads(ran.out)
    assert (ran.status, document["stopped"], document["status"]) == (1, "killed", "killed")
    assert (
        f"error: thread {thread} was killed by C O Mitter <committer@example.com>: "
        f"of no use\nhint: `uwf thread fork {thread}` continues it in a new thread\n"
    ) in ran.err
    assert f"refs/archive/{thread}" in ran.err


def test_agents_and_directory_of_the_run_reach_a_driver_in_the_background(uwf: Uwf) -> None:
    (uwf.place / "sub dir").mkdir()
    thread = uwf.begun("no-such-agent")
    mine = uwf.agent(f"pwd >where; {ANSWER}", name="mine")
    words = ["--agent", f"writer={mine}", "--agent", "checker=another", "--workdir", "sub dir"]
    words += ["--max-steps", "1", "--stream", "--trust"]

    driver = uwf.json("thread", "run", thread, "--background", *words)
    [rest] = uwf.json("thread", "wait", thread, "--timeout", "30")

    assert (rest["status"], driver["thread"]) == ("ready", thread)
    assert (uwf.place / "sub dir" / "where").read_text() == f"{uwf.place}/sub dir\n"
    with open(driver["log"], encoding="utf-8") as log:
        assert log.read().startswith("What was said.\n")


@click.command
@drive_options
def parse(how: DriveOptions) -> DriveOptions:
    """Return the options as they were parsed."""
    return how


def read(words: list[str]) -> DriveOptions:
    made = CliRunner().invoke(parse, words, standalone_mode=False)
    assert made.exception is None
    told: DriveOptions = made.return_value
    return told


TYPED = [
    DriveOptions(until, trust, wait, stream, background=True, timestamps=False, jobs=2)
    for until in (None, "writer", "--wait", "")
    for trust, wait, stream in itertools.product([False, True], repeat=3)
]


def test_driver_in_the_background_reads_the_same_options() -> None:
    for typed in TYPED:
        assert read(typed.words()) == typed._replace(background=False)
