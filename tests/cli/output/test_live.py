"""The whole terminal, on a model of one; with its modes and signals in test_live_views.py."""

import os
import signal

import pytest
from cli.terminal import Terminal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from uwf_git.cli.output.live import LiveLines, full_screen
from uwf_git.cli.session import write_stderr

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


# Live lines on a model of a terminal: nothing is left of them, and no other line is lost.


class Shown:
    """Live lines, and the terminal on which they are."""

    def __init__(
        self,
        capsys: Captured,
        monkeypatch: pytest.MonkeyPatch,
        *,
        columns: int = 20,
        lines: int = 9,
    ) -> None:
        self.capsys, self.terminal, self.live = capsys, Terminal(columns, lines), LiveLines()
        monkeypatch.setattr(os, "get_terminal_size", self.size)

    def size(self, _file: int) -> os.terminal_size:
        return os.terminal_size((self.terminal.columns, self.terminal.height))

    def show(self, *lines: str) -> str:
        self.live.show(lines)
        return self.pass_on()

    def tell(self, line: str) -> None:
        self.live.clear()
        write_stderr(f"{line}\n")
        self.pass_on()

    def pass_on(self) -> str:
        written = self.capsys.readouterr().err
        self.terminal.write(written)
        return written


@pytest.fixture
def shown(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> Shown:
    return Shown(capsys, monkeypatch)


def test_lines_that_have_not_changed_are_not_written_again(shown: Shown) -> None:
    assert shown.show("same")
    assert shown.show("same") == ""


def test_what_is_typed_meanwhile_does_not_wrap(shown: Shown) -> None:
    shown.tell("done")
    shown.show("x" * 19, "y" * 19)
    shown.terminal.write("^C")
    shown.show("a", "b")

    assert shown.terminal.screen == ["done", "a", "b"]


def test_more_lines_than_the_screen_has_are_counted(shown: Shown) -> None:
    shown.tell("done")
    shown.show(*(f"branch {number}" for number in range(32)))

    assert shown.terminal.screen == [
        "done", *(f"branch {number}" for number in range(7)), "   and 25 more"
    ]  # fmt: skip


def test_cursor_is_never_hidden_and_no_mode_is_changed(shown: Shown) -> None:
    assert "\x1b[?" not in shown.show("a", "b") + shown.show("c")


ROWS = st.lists(st.integers(0, 24).map(lambda width: ("abcdefghijklmnopqrstuvwxyz")[:width] or "-"))
MOVES = st.lists(st.one_of(ROWS, st.text("xy ", min_size=1), st.integers(6, 40)), max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(MOVES)
def test_only_done_lines_and_the_newest_live_ones_are_there(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, moves: list[list[str] | str | int]
) -> None:
    # So high that no live line leaves the screen, however narrow it gets.
    shown = Shown(capsys, monkeypatch, lines=1000)
    done: list[str] = []
    live: list[str] = []
    for move in moves:
        if isinstance(move, int):
            shown.terminal.resize(move, 1000)
        elif isinstance(move, str):
            shown.tell(f"|{move}|")
            done, live = [*done, f"|{move}|"], []
        else:
            live = [line[: shown.terminal.columns - 1] for line in move]
            shown.show(*live)

    assert shown.terminal.lines == ([*done, *live] or [""])
