"""The whole terminal, on a model of one; with its modes and signals in test_live_views.py."""

import os
import signal

import pytest
from cli.terminal import Terminal

from uwf_git.cli.output.live import full_screen

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    terminal = Terminal(10, 3)
    terminal.write("$ uwf\n")
    size = os.terminal_size((10, 3))
    monkeypatch.setattr(os, "get_terminal_size", lambda _file: size)
    return terminal


def test_view_fits_and_is_written_only_if_it_has_changed(
    terminal: Terminal, capsys: Captured
) -> None:
    with full_screen() as screen:
        screen.show(["a long one", "b", "c", "too many"])
        terminal.write(capsys.readouterr().out)
        assert terminal.screen == ["a long one", "b", "c"]
        screen.show(["a long one", "b", "c"])
        assert capsys.readouterr().out == ""
        screen.show(["short"])
        terminal.write(capsys.readouterr().out)
        assert terminal.screen == ["short"]
        screen.show(["much too long for it", "b"])
        terminal.write(capsys.readouterr().out)
        assert terminal.screen == ["much too t", "b"]
    terminal.write(capsys.readouterr().out)

    assert terminal.screen == ["$ uwf"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_terminal_is_given_back_whatever_happens(
    error: type[BaseException], terminal: Terminal, capsys: Captured
) -> None:
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGTSTP)
    before = [signal.getsignal(each) for each in signals]
    with pytest.raises(error), full_screen():
        raise error
    terminal.write(capsys.readouterr().out)

    assert terminal.has_cursor
    assert terminal.has_wrap
    assert not terminal.is_other
    assert [signal.getsignal(each) for each in signals] == before
