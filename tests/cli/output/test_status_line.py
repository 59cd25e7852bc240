import os

import pytest

from uwf_git.cli.output.status_line import StatusLine

CLEAR = "\r\x1b[2K"
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _file: os.terminal_size((12, 5)))


@pytest.mark.usefixtures("width")
def test_line_is_written_anew_and_never_wraps(capsys: Captured) -> None:
    line = StatusLine()

    line.show("short")
    line.show("much too long for it")

    assert capsys.readouterr().err == f"{CLEAR}short{CLEAR}much too l…"


def test_line_that_has_not_changed_is_not_written_again(capsys: Captured) -> None:
    line = StatusLine()

    line.show("same")
    line.show("same")

    assert capsys.readouterr().err == f"{CLEAR}same"


def test_nothing_is_cleared_if_nothing_is_shown(capsys: Captured) -> None:
    line = StatusLine()

    line.clear()
    line.show("x")
    line.clear()
    line.clear()

    assert capsys.readouterr().err == f"{CLEAR}x{CLEAR}"


def test_controls_are_spelled_out(capsys: Captured) -> None:
    StatusLine().show("a\x1b[2Jb\nc\u202ed")

    assert capsys.readouterr().err == f"{CLEAR}a\\x1b[2Jb\\nc\\u202ed"


def test_terminal_that_does_not_know_its_width_has_eighty_columns(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _file: os.terminal_size((0, 0)))

    StatusLine().show("x" * 100)

    assert capsys.readouterr().err == CLEAR + "x" * 78 + "…"


@pytest.mark.parametrize("error", [OSError, ValueError])
def test_stream_that_is_no_terminal_has_eighty_columns(
    error: type[Exception], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_file: int) -> os.terminal_size:
        raise error

    monkeypatch.setattr(os, "get_terminal_size", fail)

    StatusLine().show("x" * 100)

    assert len(capsys.readouterr().err) == len(CLEAR) + 79
