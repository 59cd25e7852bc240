import itertools
import json

import click
import pytest
from cli.program import ANSWER, Uwf
from click.testing import CliRunner
from commands.world import DEMO

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


def test_a_run_of_a_thread_that_has_ended_tells_its_end(uwf: Uwf) -> None:
    thread, killed = uwf.begun(), uwf.killed()
    uwf.json("thread", "run", thread)

    for words in ([], ["--background"]):
        again = uwf.json("thread", "run", thread, *words)
        assert (again["status"], again["stopped"], again["steps"]) == ("completed", "end", 0)
        ran = uwf("thread", "run", killed, *words).says(1, "was killed by")
        assert json.loads(ran.out)["stopped"] == "killed"
    uwf("thread", "step", thread).refused(1, "is not active")


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


def test_role_of_a_background_run_is_checked_at_once(uwf: Uwf) -> None:
    ran = uwf("thread", "run", uwf.begun(), "--background", "--until", "reviewer")
    ran.refused(1, "has no role reviewer")


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["01ARZ3NDEKTSV4RRFFQ69G5FAV"], 1, "there is no thread 01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        (["{thread}", "--until", "nobody"], 1, "has no role nobody"),
        (["{thread}", "--max-steps", "0"], 2, "'--max-steps'"),
        (["{thread}", "--workdir", "nowhere"], 1, "nowhere"),
    ],
)
def test_wrong_usage_is_reported_and_run_nothing(
    words: list[str], status: int, said: str, uwf: Uwf, thread: str
) -> None:
    ran = uwf("thread", "run", *[word.format(thread=thread) for word in words])

    assert (ran.status, ran.out) == (status, "")
    assert said in ran.err.splitlines()[0]
    assert uwf.json("thread", "show", thread)["depth"] == 0


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


def test_waiting_thread_names_its_role(uwf: Uwf) -> None:
    [row] = uwf.json("thread", "wait", uwf.stepped("human"))

    assert (row["status"], row["waiting"]) == ("waiting", {"role": "writer"})


def test_thread_without_a_next_role_is_told_and_is_exit_1(uwf: Uwf) -> None:
    stuck = DEMO.replace("to: checker}", "to: checker, condition: meta.text > 3}")
    thread = uwf.stepped(workflow=stuck)

    ran = uwf("thread", "wait", thread)

    (row,) = json.loads(ran.out)
    assert (ran.status, row["status"]) == (1, "ready")
    (held,) = row["heldBy"]
    assert held["error"].startswith("condition `meta.text > 3` failed: The values x and 3")
    assert ran.err == f"next: {held['error']}; {held['hint']}\n"
    assert uwf.json("thread", "show", thread)["heldBy"] == [held]
    text = uwf("thread", "show", thread, "--format", "text").out
    assert text.endswith(f"\n\n{ran.err}")
    assert text.count("meta.text > 3") == 1


def test_branch_without_a_next_step_is_told_and_is_exit_1(uwf: Uwf) -> None:
    nodes = '[{type: agent, agentId: a}, {type: agent, agentId: a, input: "${state.n.m.o}"}]'
    stuck = (
        f"name: stuck\nroot: {{type: parallel, nodes: [{{type: sequential, nodes: {nodes}}}]}}\n"
    )
    uwf("run", uwf.file(stuck, name="stuck.yaml"), "--agent", uwf.agent("echo {}"), "-p", "Do it.")

    ran = uwf("thread", "wait", "@")

    (row,) = json.loads(ran.out)
    assert (ran.status, row["status"], row["branches"]) == (1, "split", {"ready": 1})
    assert row["heldBy"] == uwf.json("thread", "show", "@")["heldBy"]
    assert row["heldBy"][0]["error"].startswith("expression `${state.n.m.o}` failed")


@pytest.mark.parametrize(
    ("ends", "status"),
    [(["killed"], 1), (["failed"], 3), (["ready", "killed"], 1), (["killed", "failed"], 3)],
)
def test_exit_status_tells_the_worst(ends: list[str], status: int, uwf: Uwf) -> None:
    threads = []
    for end in ends:
        threads.append(uwf.begun(uwf.agent("exit 9") if end == "failed" else uwf.agent()))
        if end == "killed":
            uwf.json("thread", "kill", threads[-1])
        if end == "failed":
            assert uwf("thread", "step", threads[-1]).status == 3

    ran = uwf("thread", "wait", *threads)

    assert [row["status"] for row in json.loads(ran.out)] == ends
    assert ran.status == status
    assert [line[:6] for line in ran.err.splitlines()] == ["next: "] * ends.count("failed")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ([], 2),
        (["01J", "--timeout", "-1"], 2),
        (["01J", "--timeout", "nan"], 2),
        (["01J", "--timeout", "inf"], 1),
        (["01J"], 1),
        (["7", "x y"], 1),
    ],
)
def test_wrong_usage_is_reported(words: list[str], status: int, uwf: Uwf) -> None:
    ran = uwf("thread", "wait", *words)

    assert (ran.status, ran.out) == (status, "")
    assert ran.err.startswith("error: ")
