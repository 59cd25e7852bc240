import json
import os
import re
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from cli.program import ANSWER, Uwf
from cli.terminal import Terminal

from uwf_git.cli.session import write_stderr
from uwf_git.cli.thread.progress import AtWork, tell_elapsed
from uwf_git.cli.thread.show import describe_limits, describe_status, describe_work
from uwf_git.model.names import ThreadId


def test_status_is_coloured_in_a_pipe_if_that_is_forced(uwf: Uwf) -> None:
    environ = {**uwf.session.environ, "FORCE_COLOR": "1"}

    told = uwf("thread", "show", uwf.killed(), "--format", "text", environ=environ).out

    assert "status    \x1b[35m× killed" in told  # noqa: RUF001 (it is no letter)


def test_text_has_the_first_fields_of_a_step(uwf: Uwf) -> None:
    meta = {"text": "x", **{f"f{number}": number for number in range(40)}}
    answer = json.dumps({"meta": meta, "content": "y"})
    told = uwf("thread", "show", uwf.stepped(uwf.agent(f"echo '{answer}'")), "--format", "text").out

    assert "   f28: 28\n   … and 11 more; --format json shows all\n" in told
    assert "f29" not in told


def test_text_says_what_holds_a_thread(uwf: Uwf) -> None:
    document: dict[str, Any] = {
        "status": "paused",
        "failures": 2,
        "pausedFrom": "waiting",
        "waiting": {"role": "writer", "since": 0},
    }
    running = {"role": "writer", "agent": "uwf-mock", "pid": 7, "since": 1000, "driven": True}

    assert describe_status(document) == "paused, and was waiting, after 2 failed tries"
    document |= {"status": "waiting", "pausedFrom": None, "failures": 1}
    document["waiting"]["until"] = 60_000
    assert describe_status(document) == (
        "waiting until 1970-01-01 00:01:00 UTC: writer hit a limit, after 1 failed try"
    )
    document |= {"status": "running", "failures": 0, "running": running}
    assert describe_status(document) == (
        "running; at work: writer (uwf-mock), process 7, since 1970-01-01 00:00:01 UTC"
    )
    document["running"] = {"role": None, "agent": None, "pid": None, "since": None, "driven": True}
    assert describe_status(document) == "running; at work: the driver"


def test_text_has_the_limits_and_what_of_them_is_used(uwf: Uwf) -> None:
    limits = {"maxSteps": 9, "maxExecutionTime": 60_000, "maxCost": 3}
    used = {"maxSteps": 2, "maxExecutionTime": 1500, "maxCost": 0.5}

    told = describe_limits({"limits": limits, "limitsUsed": used})

    assert told == "maxSteps 2 of 9, maxExecutionTime 1.5 s of 1 min 00 s, maxCost 0.5 of 3"
    # Those of a branch are its root's.
    assert describe_limits({"limits": {"maxSteps": 9}}) == "maxSteps 9"
    assert describe_limits({"limits": {}}) is None


def test_text_has_where_the_work_of_branches_is() -> None:
    inner = {
        "path": "lib",
        "ref": "refs/uwf/inner/B/lib",
        "commit": "2",
        "repository": "/p/modules",
    }
    at_work = {"ref": "refs/uwf/work/A", "commit": None, "repository": "/p", "worktree": "/w/A"}
    kept = {"ref": "refs/uwf/work/B", "commit": "1", "repository": "/p", "worktree": None}

    assert describe_work(
        {"work": [at_work, {**kept, "number": 1, "label": "map: b", "inner": [inner]}]}
    ) == [
        "worktree  /w/A",
        "work      1 map: b, refs/uwf/work/B of /p",
        "work      1 map: b, refs/uwf/inner/B/lib of /p/modules",
    ]


def test_text_says_to_its_end_who_is_at_work(uwf: Uwf) -> None:
    show = "echo so >&2; sleep 0.1; uwf thread show $UWF_THREAD_ID --format text > shown"
    agent = uwf.agent(f"{show}\n{ANSWER}", name="an-agent-with-a-long-name")
    uwf.json("thread", "step", uwf.begun(agent))
    shown = (uwf.place / "shown").read_text()
    assert re.search(r"(?m)^status .*last output \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", shown), shown


# Live lines of a drive: their order, and who may write where they are.

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(os, "get_terminal_size", lambda _file: os.terminal_size((40, 9)))
    return Terminal(40, 9)


def test_branches_stand_in_the_order_of_their_numbers(terminal: Terminal, capsys: Captured) -> None:
    at_work = AtWork(is_live=True)
    with ExitStack() as stack:
        for name in ("10 tester", "2.1 reader", "2 writer", "0 editor"):
            line = at_work.shown(ThreadId(name), name, partial("{} works".format, name))
            stack.enter_context(line)
        terminal.write(capsys.readouterr().err)
        assert terminal.screen == [
            "0 editor works", "2 writer works", "2.1 reader works", "10 tester works"
        ]  # fmt: skip
        with at_work.above():
            write_stderr("✓ done\n")
        terminal.write(capsys.readouterr().err)
        assert terminal.screen[:2] == ["✓ done", "0 editor works"]
    terminal.write(capsys.readouterr().err)
    assert terminal.screen == ["✓ done"]


def test_nothing_is_drawn_while_an_agent_uses_the_terminal(
    terminal: Terminal, capsys: Captured
) -> None:
    at_work = AtWork(is_live=True)
    seconds = iter(range(100))
    with at_work.shown(ThreadId("x"), "", lambda: f"{next(seconds)} s"):
        with at_work.hidden():
            write_stderr("Well? ")
            terminal.write(capsys.readouterr().err)
            at_work.tick()
            with at_work.shown(ThreadId("y"), "1 other", lambda: "other"):
                at_work.tick()
            assert capsys.readouterr().err == ""
            assert terminal.screen == ["Well?"]
            write_stderr("\n")
        with at_work.above():
            pass
        terminal.write(capsys.readouterr().err)
        assert terminal.screen == ["Well?", "1 s"]


def test_elapsed_has_no_tenths() -> None:
    assert [tell_elapsed(0), tell_elapsed(59), tell_elapsed(90)] == ["0 s", "59 s", "1 min 30 s"]
