"""`uwf watch`: lines where there is no screen; on a terminal a view that gives it back."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.at_terminal import AtTerminal
from cli.program import ANSWER, Uwf

from uwf_git.agents.run_files import find_last_output_ms
from uwf_git.cli.output.screen import display_width, tell_silence
from uwf_git.commands.fleet.claims import Claim, Hub
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.store import open_store
from uwf_git.store.threads.local_files import lock_thread


def ended(uwf: Uwf, *, agent: str = ANSWER) -> str:
    """Drive a thread to its end, and return its id."""
    thread = uwf.begun(uwf.agent(agent))
    uwf("thread", "run", thread)
    return thread


def test_threads_that_have_ended_are_a_line_each(uwf: Uwf) -> None:
    one, two = ended(uwf), ended(uwf)

    ran = uwf("watch", one, two)

    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.status == 0
    assert [(row["thread"], row["status"], row["depth"]) for row in rows] == [
        (one, "completed", 2), (two, "completed", 2)
    ]  # fmt: skip


@pytest.mark.parametrize("is_tty", [False, True])
def test_dumb_terminal_has_plain_lines(is_tty: bool, uwf: Uwf) -> None:  # noqa: FBT001 (a parameter)
    thread = ended(uwf, agent=ANSWER.replace("What was said", "a\\u202eb"))

    ran = uwf("watch", thread, output_format="text", stdout_is_tty=is_tty)

    shown = thread[:10] if is_tty else thread
    assert ran.out == f"✓ completed  {shown}  demo  2  checker: a b.\n"


def test_view_is_live_and_gives_the_terminal_back(uwf: Uwf) -> None:
    thread = uwf.begun(uwf.agent(f"until [ -e go ]; do sleep 0.02; done; {ANSWER}"))
    with AtTerminal(uwf, "watch", columns=70, lines=6) as terminal:
        terminal.until("1 ready")
        assert terminal.model.is_other
        assert not terminal.model.has_cursor
        uwf("thread", "pause", thread)
        terminal.until("1 paused")
        terminal.resize(40, 4)
        terminal.until_seen(lambda screen: "WHEN" not in screen[0] and screen[-1] == "1 paused")
        assert max(map(display_width, terminal.model.screen)) < 40
        terminal.type("x\x03")
        assert terminal.wait() == 130
        assert terminal.is_sane
        # What was seen last stays, and nothing of what was typed.
        assert terminal.model.screen[-1] == "1 paused"


def test_row_is_a_document(uwf: Uwf, thread: str) -> None:
    with lock_thread(open_store(str(uwf.session.repo)), ThreadId(thread), since_ms=0) as lock:
        lock.say("writer", "uwf-claude")
        (row,) = uwf.json("ps")

    assert list(row) == [
        "thread", "status", "workflow", "workflowName", "role", "agent", "pid", "group", "since",
        "elapsedMs", "driven", "lastOutput",
    ]  # fmt: skip
    assert (row["thread"], row["status"], row["role"]) == (thread, "running", "writer")
    assert row["elapsedMs"] > 1_700_000_000_000


def test_screen_shows_the_last_logged_line_and_no_pid_unless_asked(uwf: Uwf, thread: str) -> None:
    store = open_store(str(uwf.session.repo))
    screen = {"stdout_is_tty": True, "environ": {**uwf.session.environ, "COLUMNS": "60"}}
    with lock_thread(store, ThreadId(thread), since_ms=uwf.session.now_ms()) as lock:
        lock.say("writer", "uwf-claude")
        brief = uwf("ps", "--format", "text", **screen).out
        at_length = uwf("ps", "--format", "text", "--long", **screen).out

    assert brief.split("\n")[0].split() == ["THREAD", "WORKFLOW", "ROLE", "AGENT", "FOR"]
    assert brief.split("\n")[1].startswith(f"●  {thread[:10]}  demo")
    assert "GROUP" in at_length


def test_claims_are_not_cut_if_asked(uwf: Uwf, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = {uwf.begun(): Claim(Oid("0" * 40), {"host": "far", "role": "r" * 60})}
    monkeypatch.setattr(Hub, "read_claims", lambda _hub: claims)
    uwf("remote", "add", "origin", str(uwf.place / "hub.git"))
    screen = {"stdout_is_tty": True, "environ": {**uwf.session.environ, "COLUMNS": "60"}}
    words = ("ps", "--remote", "--format", "text")

    assert "r" * 60 not in uwf(*words, **screen).out
    assert "r" * 60 in uwf(*words, "--wide", **screen).out


@pytest.mark.parametrize(
    ("last_ms", "told"), [(None, ""), (1_000_000, ""), (941_000, ""), (940_000, "silent for 1 min")]
)
def test_silence_is_told_once_it_is_a_minute_long(last_ms: int | None, told: str) -> None:
    assert tell_silence(last_ms, 1_000_000) == told


def test_last_output_is_that_of_the_newest_file_or_the_start(tmp_path: Path) -> None:
    (tmp_path / "pid").write_text("7\n")
    (tmp_path / "stdout").write_text("")
    os.utime(tmp_path / "pid", (1_000, 1_000))
    assert find_last_output_ms(str(tmp_path)) == 1_000_000
    (tmp_path / "stderr").write_text("working\n")
    os.utime(tmp_path / "stderr", (1_060, 1_060))
    assert find_last_output_ms(str(tmp_path)) == 1_060_000


STEP = ["node:enter", "node:exit", "workflow:progress"]

Follow = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def follow(uwf: Uwf) -> Iterator[Follow]:
    """Start `uwf events --follow` as its own process."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> "subprocess.Popen[bytes]":
        started.append(uwf.process("events", "--follow", *words))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def told(uwf: Uwf, *words: str) -> list[dict[str, Any]]:
    ran = uwf("events", *words)
    assert ran.status == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


def next_event(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    assert process.stdout is not None
    event: dict[str, Any] = json.loads(process.stdout.readline())
    return event


def test_events_are_json_lines_even_on_a_terminal(uwf: Uwf) -> None:
    thread = uwf.stepped()

    ran = uwf("events", stdout_is_tty=True)

    events = [json.loads(line) for line in ran.out.splitlines()]
    assert [event["type"] for event in events] == ["workflow:start", *STEP]
    assert {event["taskId"] for event in events} == {thread}
    assert uwf("events", thread[:10], stdout_is_tty=True).out == ran.out


def test_rest_after_an_event_can_be_asked_for_in_parts(uwf: Uwf) -> None:
    for _ in range(2):
        uwf.json("thread", "step", uwf.begun())
    everything = told(uwf)

    pages: list[dict[str, Any]] = []
    while page := told(uwf, "--limit", "3", *(("--since", pages[-1]["id"]) if pages else ())):
        assert len(page) <= 3
        pages += page

    assert pages == everything


def test_lines_are_for_people(uwf: Uwf) -> None:
    thread = uwf.begun(uwf.agent("printf '\\033[2Jgone\\n' >&2; exit 7"))
    assert uwf("thread", "step", thread).status == 3

    lines = uwf("events", "--format", "text").out.splitlines()

    assert len(lines) == 2
    assert lines[0].endswith(f"UTC  {thread}  ○              start: Do it.")
    assert re.search(
        rf"UTC  {thread}  ✗    writer    exit status 7: \\x1b\[2Jgone  +\d\.\d s$", lines[1]
    )


def test_follower_gets_events_at_once_and_ends_quietly_when_interrupted(
    uwf: Uwf, thread: str, follow: Follow
) -> None:
    start = told(uwf)[0]["id"]
    # An agent that waits until the test has seen its start.
    gate = uwf.place / "gate"
    os.mkfifo(gate)
    held = uwf.agent(f'read _ <"{gate}"; {ANSWER}', name="held")
    process = follow("--since", start)
    step = uwf.process("thread", "step", thread, "--agent", held)
    enter = next_event(process)
    assert (enter["type"], enter["status"], enter["agent"]) == ("node:enter", "running", "held")
    gate.write_text("\n")

    assert [next_event(process)["type"] for _ in range(2)] == STEP[1:]
    step.communicate()
    assert [event["id"] for event in told(uwf)][1] == enter["id"]
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"")


def test_follower_notices_that_the_reader_left(uwf: Uwf, follow: Follow) -> None:
    uwf.begun()
    process = follow()
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()

    assert process.wait() == 141
    assert process.stderr.read() == b""


def test_lesson_32_why_a_drive_in_the_background_failed_is_an_event(
    uwf: Uwf, follow: Follow
) -> None:
    thread = uwf.begun(uwf.agent("echo no key >&2; exit 7"))
    process = follow("--since", told(uwf)[0]["id"], thread)

    uwf.json("thread", "run", thread, "--background")

    events = [next_event(process) for _ in range(3)]
    assert events[-1]["type"] == "workflow:error"
    assert events[-1]["payload"]["error"] == "exit status 7: no key"
