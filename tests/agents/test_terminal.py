import os
import pty
import termios
from pathlib import Path

import pytest
from programs import write_program
from refusing import refuses

from uwf_git.agents.terminal import NoTerminal, Terminal, choose_pager, edit_text


def test_end_of_input_is_returned_a_few_times(screen: tuple[int, Terminal]) -> None:
    ours, terminal = screen
    os.write(ours, b"\x04\x04\x04x\n\x04\x04\x04\x04")

    assert [terminal.read_line() for _ in range(4)] == [None, None, None, "x"]
    assert [terminal.read_line() for _ in range(3)] == [None, None, None]
    with refuses("left"):
        terminal.read_line()


def test_line_that_the_terminal_cuts_is_left_out(screen: tuple[int, Terminal]) -> None:
    ours, terminal = screen
    # What is shown is not read meanwhile, so without the echo of the long line.
    settings = termios.tcgetattr(ours)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(ours, termios.TCSANOW, settings)
    for _ in range(10):
        os.write(ours, b"x" * 500)
    os.write(ours, b"\nshort\n")

    assert terminal.read_line() == "short"
    # A read returns what has come so far.
    with open(ours, "rb", closefd=False) as shown:
        assert b"That line was left out" in [shown.readline() for _line in range(2)][1]


def test_line_that_is_no_utf_8_is_asked_for_again(screen: tuple[int, Terminal]) -> None:
    ours, terminal = screen
    os.write(ours, b"gr\374\337e\ngr\xc3\xbc\xc3\x9fe\n")

    assert terminal.read_line() == "grüße"
    with open(ours, "rb", closefd=False) as shown:
        # Behind the echo of both lines and the prompt.
        assert b"not UTF-8 text, and was left out" in [shown.readline() for _line in range(4)][3]


def test_closed_terminal_is_reported() -> None:
    ours, theirs = pty.openpty()
    terminal = Terminal({"UWF_TTY": os.ttyname(theirs)}, note=print)
    os.close(theirs)
    os.close(ours)

    with refuses("left"):
        terminal.say("x")
    terminal.close()


def test_text_of_others_cannot_move_the_cursor(screen: tuple[int, Terminal]) -> None:
    ours, terminal = screen
    terminal.say("\x1b[2Jcleared\x9b\u202e\ttab\n")

    # A read returns what has come so far.
    with open(ours, "rb", closefd=False) as shown:
        assert shown.readline() == b"\\x1b[2Jcleared\\x9b\\u202e\ttab\r\n"


@pytest.mark.parametrize("name", ["/dev/null", "/no/such"])
def test_other_file_than_a_terminal_is_refused(name: str) -> None:
    with pytest.raises(NoTerminal, match=name):
        Terminal({"UWF_TTY": name}, note=print)


@pytest.mark.parametrize(
    ("environ", "setting", "chosen"),
    [
        ({"GIT_PAGER": "a -x", "PAGER": "c"}, "b", "a -x"),
        ({"PAGER": "c"}, "b", "b"),
        ({"PAGER": "c"}, None, "c"),
        ({"GIT_PAGER": "", "PAGER": "c"}, "b", None),
        ({"PAGER": " cat "}, None, None),
        ({"PAGER": "c", "TERM": "dumb"}, None, None),
        ({"PATH": "/nowhere"}, None, None),
    ],
)
def test_pager_is_the_one_of_git(
    environ: dict[str, str], setting: str | None, chosen: str | None
) -> None:
    assert choose_pager({"TERM": "xterm", **environ}, setting) == chosen


def test_less_is_used_where_it_is_installed(tmp_path: Path) -> None:
    (tmp_path / "less").write_text("#!/bin/sh\n")
    (tmp_path / "less").chmod(0o755)

    assert choose_pager({"TERM": "xterm", "PATH": str(tmp_path)}, None) == "less"


def editor(tmp_path: Path, script: str) -> dict[str, str]:
    path = write_program(tmp_path / "editor", script)
    return {"EDITOR": f"{path} --wait", "PATH": os.environ["PATH"]}


def test_text_is_what_the_editor_left(screen: tuple[int, Terminal], tmp_path: Path) -> None:
    environ = editor(tmp_path, 'test -t 0 && test "$1" = --wait && echo " and more" >>"$2"')

    assert edit_text(screen[1], "grün", environ=environ) == "grün and more\n"


def test_visual_comes_before_editor(screen: tuple[int, Terminal], tmp_path: Path) -> None:
    environ = editor(tmp_path, "exit 1") | {"VISUAL": "true"}

    assert edit_text(screen[1], "as it was", environ=environ) == "as it was"


def test_failing_editor_is_reported(screen: tuple[int, Terminal], tmp_path: Path) -> None:
    ours, terminal = screen

    assert edit_text(terminal, "lost?", environ=editor(tmp_path, "exit 7")) is None
    with open(ours, "rb", closefd=False) as shown:
        assert b"failed with exit status 7" in shown.readline()


def test_text_that_the_editor_saved_otherwise_is_edited_again(
    screen: tuple[int, Terminal], tmp_path: Path
) -> None:
    script = 'printf "gr\\374n" >"$2"; test ! -e "$2.old" || echo grün >"$2"; : >"$2.old"'
    environ = editor(tmp_path, script)
    os.write(screen[0], b"\n")

    assert edit_text(screen[1], "", environ=environ) == "grün\n"
