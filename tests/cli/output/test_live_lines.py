"""Live lines on a model of a terminal: nothing is left of them, and no other line is lost."""

import os

import pytest
from cli.terminal import Terminal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from uwf_git.cli.output.live import LiveLines
from uwf_git.cli.session.settings import write_stderr

Captured = pytest.CaptureFixture[str]


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


def test_lines_are_written_anew_where_they_were(shown: Shown) -> None:
    shown.tell("done")
    shown.show("one", "two", "three")
    shown.show("one", "2")

    assert shown.terminal.screen == ["done", "one", "2"]
    shown.tell("more")
    assert shown.terminal.screen == ["done", "more"]


def test_lines_that_have_not_changed_are_not_written_again(shown: Shown) -> None:
    assert shown.show("same")
    assert shown.show("same") == ""


def test_nothing_is_cleared_if_nothing_is_shown(shown: Shown) -> None:
    shown.show("x")
    shown.show()

    shown.live.clear()
    assert shown.show() == ""
    assert shown.terminal.screen == [""]


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
    shown = Shown(capsys, monkeypatch, lines=100)
    done: list[str] = []
    live: list[str] = []
    for move in moves:
        if isinstance(move, int):
            shown.terminal.resize(move, 100)
        elif isinstance(move, str):
            shown.tell(f"|{move}|")
            done, live = [*done, f"|{move}|"], []
        else:
            live = [line[: shown.terminal.columns - 1] for line in move]
            shown.show(*live)

    assert shown.terminal.lines == ([*done, *live] or [""])
