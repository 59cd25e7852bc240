"""The whole terminal, on a model of one; with its modes and signals in test_live_views.py."""

import os
import re
import signal

import pytest
from cli.terminal import Terminal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from uwf_git.cli.output.live import LiveLines, StepLines, forwarded_output, full_screen
from uwf_git.cli.output.screen import Screen, display_width
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
        self, capsys: Captured, monkeypatch: pytest.MonkeyPatch, *, lines: int = 9
    ) -> None:
        self.capsys, self.terminal, self.live = capsys, Terminal(20, lines), LiveLines()
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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(ROWS, st.text("xy ", min_size=1), st.integers(6, 40)), max_size=8))
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


def lines_of(columns: int | None, **screen: bool) -> StepLines:
    return StepLines(Screen(**screen), lambda: columns)


def test_colour_is_that_of_the_mark_and_ascii_where_nothing_else_is_written() -> None:
    coloured, plain = lines_of(60, has_colour=True), lines_of(60, is_utf8=False)

    assert coloured.format(coloured.screen.mark("failed"), "a", "b").startswith(
        "\x1b[31m✗\x1b[0m  "
    )
    assert plain.format(plain.screen.mark("again"), "日", "é").isascii()


@given(st.text(), st.text(), st.integers(60, 130), st.booleans())
def test_no_line_is_wider_than_the_terminal(
    name: str,
    said: str,
    columns: int,
    is_utf8: bool,  # noqa: FBT001 (hypothesis passes it so)
) -> None:
    lines = lines_of(columns, is_utf8=is_utf8)
    lines.before = 22

    line = lines.format(lines.screen.mark("completed"), name, said, number=100, tail="1 min 05 s")

    assert display_width(line) < columns
    assert not re.search("[\x00-\x1f\x7f-\x9f]", line)


@pytest.mark.parametrize("columns", range(14, 23))
def test_line_of_a_narrow_terminal_does_not_wrap(columns: int) -> None:
    lines = lines_of(columns)

    line = lines.format(lines.screen.mark("running"), "writer", "3 s, attempt 1", number=1)

    assert display_width(line) < columns


def test_log_is_text_that_ends_its_last_line(capsys: Captured) -> None:
    for pieces, text in [
        ([], ""),
        ([b""], ""),
        ([b"a\n", b"b\n"], "a\nb\n"),
        ([b"no line end"], "no line end\n"),
        ([b"a\n", b"", b"b"], "a\nb\n"),
        (["é".encode()[:1], "é".encode()[1:] + b"\n"], "é\n"),
        ([b"\xff\n"], "\ufffd\n"),
        ([b"x\n", "é".encode()[:1]], "x\n\ufffd\n"),
        ([b"a\r\n", b"b\r", b"\nc\n"], "a\nb\nc\n"),
        ([b" 1%\r 2%\r", b" 3%\n"], " 1%\n 2%\n 3%\n"),
        ([b"\x1b[31mred\x1b[0m\n"], "red\n"),
        ([b"a\x1b", b"[1;3", b"1mb\n"], "ab\n"),
        ([b"\x1b[2Jgone\n"], "\\x1b[2Jgone\n"),
        ([b"\x1b]0;title\x07\n"], "\\x1b]0;title\\x07\n"),
        ([b"half \x1b[3"], "half \\x1b[3\n"),
        (["\u202eevil\n".encode()], "\\u202eevil\n"),
    ]:
        with forwarded_output() as forwarded:
            for piece in pieces:
                forwarded.stderr(piece)
        assert capsys.readouterr().err == text


def test_reply_that_is_an_object_is_printed_as_its_text(capsys: Captured) -> None:
    for log, reply, text in [
        (b"", b'{"meta": {"a": 1}, "content": "All\\nof it.", "rung": "tail"}', "All\nof it.\n"),
        (b"All\nof it.\n", b' {"meta": {}, "content": "All\\nof it.\\n"}\n', "All\nof it.\n"),
        (b"", b'{"meta": {}}', ""),
        (b"", b'{"meta": half', '{"meta": half\n'),
        (b"", b'{"a": 1}\n', '{"a": 1}\n'),
        (b"", b"\nA text.", "\nA text.\n"),
    ]:
        with forwarded_output() as forward:
            forward.stderr(log)
            forward.stdout(reply[:5])
            forward.stdout(reply[5:])

        assert capsys.readouterr().err == text


def test_lines_of_two_outputs_do_not_run_into_each_other(capsys: Captured) -> None:
    with forwarded_output() as forwarded:
        forwarded.stderr(b"think")
        forwarded.stderr(b"ing")
        forwarded.stdout(b"reply\n")
        forwarded.stderr(b" on\nand")

    assert capsys.readouterr().err == "thinking\nreply\n on\nand\n"
