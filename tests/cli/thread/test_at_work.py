"""Live lines of a drive: their order, and who may write where they are."""

import os
from contextlib import ExitStack
from functools import partial

import pytest
from cli.terminal import Terminal

from uwf_git.cli.session import write_stderr
from uwf_git.cli.thread.progress import AtWork, tell_elapsed
from uwf_git.model.names import ThreadId

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(os, "get_terminal_size", lambda _file: os.terminal_size((40, 9)))
    return Terminal(40, 9)


def test_branches_stand_in_the_order_of_their_numbers(terminal: Terminal, capsys: Captured) -> None:
    at_work = AtWork(is_live=True)
    names = ("10 tester", "2.1 reader", "2 writer", "0 editor")
    with ExitStack() as stack:
        for name in names:
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
