import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.program import ANSWER, Uwf

STEP = ["node:enter", "node:exit", "workflow:progress"]

Follow = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def follow(uwf: Uwf) -> Iterator[Follow]:
    """Start `uwf events --follow` as its own process."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [sys.executable, "-m", "uwf_git", "events", "--follow", *words],
            env={**os.environ, "UWF_REPO": str(uwf.session.repo)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return process

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
    thread = uwf.begun()
    uwf.json("thread", "step", thread)

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


def test_state_is_reported_if_asked_for(uwf: Uwf) -> None:
    thread = uwf.begun()
    uwf.json("thread", "patch", thread, '{"n": 1}')

    assert told(uwf, thread, "--state")[-1]["payload"]["state"] == {"n": 1}
    assert "state" not in told(uwf, thread)[-1]["payload"]


def test_lines_are_for_people(uwf: Uwf) -> None:
    thread = uwf.begun(uwf.agent("printf '\\033[2Jgone\\n' >&2; exit 7"))
    assert uwf("thread", "step", thread).status == 3

    lines = uwf("events", "--format", "text").out.splitlines()

    assert len(lines) == 2
    assert lines[0].endswith(f"UTC  {thread}  ○              start: Do it.")
    assert re.search(
        rf"UTC  {thread}  ✗    writer    exit status 7: \\x1b\[2Jgone  +\d\.\d s$", lines[1]
    )


def test_yaml_is_a_document_an_event(uwf: Uwf) -> None:
    uwf.json("thread", "step", uwf.begun())

    out = uwf("events", "--format", "yaml").out

    assert out.count("---\nid: ") == 4


def test_damaged_thread_is_reported_after_the_rest(uwf: Uwf) -> None:
    spoiled, whole = uwf.begun(), uwf.begun()
    for thread in (spoiled, "01J0000000000000000000BAD0"):
        Path(f"{uwf.session.repo}/refs/threads/{thread}").write_text("garbage\n")

    ran = uwf("events")

    assert ran.status == 5
    assert [json.loads(line)["taskId"] for line in ran.out.splitlines()] == [whole]
    assert ran.err.count("error: ref refs/threads/") == 2


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--since", "x"), 2, "is not the id of an event"),
        (("--since", "0" * 40), 1, "there is no event"),
        (("01J0",), 1, "there is no thread 01J0"),
        (("--limit", "0"), 2, "--limit"),
    ],
)
def test_contradiction_is_reported(
    uwf: Uwf, words: tuple[str, ...], status: int, said: str
) -> None:
    ran = uwf("events", *words)

    assert (ran.status, ran.out) == (status, "")
    assert said in ran.err


def test_follower_gets_events_at_once_and_ends_quietly_when_interrupted(
    uwf: Uwf, follow: Follow
) -> None:
    thread = uwf.begun()
    start = told(uwf)[0]["id"]
    # An agent that waits until the test has seen its start.
    gate = uwf.place / "gate"
    os.mkfifo(gate)
    held = uwf.agent(f'read _ <"{gate}"; {ANSWER}', name="held")
    process = follow("--since", start)
    step = subprocess.Popen(
        [sys.executable, "-m", "uwf_git", "thread", "step", thread, "--agent", held],
        env={**os.environ, "UWF_REPO": str(uwf.session.repo)},
        cwd=uwf.place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
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
