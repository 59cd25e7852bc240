import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.ran import Ran

from uwf_git.cli.session.settings import (
    OutputFailed,
    ReaderGone,
    hold_standard_streams,
    stderr_size,
    stdout_is_utf8,
    stdout_size,
    wait_for_reader,
    write_stderr,
    write_stdout,
)


def text_stream(file: io.RawIOBase | io.FileIO, encoding: str = "utf-8") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(file), encoding=encoding)


def test_reader_that_left_is_reported_once_and_the_rest_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = text_stream(io.FileIO(writing, "w"))
    monkeypatch.setattr(sys, "stdout", stream)

    with pytest.raises(ReaderGone):
        write_stdout("x")

    stream.close()  # would raise if the buffer were still bound for the pipe


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is full")
def test_disk_that_is_full_is_an_error_with_words(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = text_stream(io.FileIO("/dev/full", "w"))
    monkeypatch.setattr(sys, "stdout", stream)

    with pytest.raises(OutputFailed, match="standard output: No space left on device"):
        write_stdout("x")

    stream.close()


def test_note_to_closed_stderr_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", buffering=1) as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        write_stderr("x\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), writing)
    write_stderr("x\n")

    assert stream.closed


def test_missing_streams_take_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)

    write_stdout("x")
    write_stderr("x")
    hold_standard_streams()

    assert stdout_is_utf8()


@pytest.mark.parametrize(
    ("encoding", "is_utf8"),
    [("utf-8", True), ("UTF8", True), ("utf_8", True), ("ascii", False), ("latin-1", False)],
)
def test_encoding_of_standard_output_is_known(
    encoding: str, *, is_utf8: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))

    assert stdout_is_utf8() is is_utf8


def test_text_that_the_encoding_lacks_is_written_as_escapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(taken, encoding="ascii"))

    hold_standard_streams()
    write_stdout("é")

    assert taken.getvalue() == b"\\xe9"


def test_closed_descriptors_are_opened_before_anything_else_gets_their_numbers() -> None:
    script = (
        "import os, uwf_git.cli.session.settings as s\n"
        "os.closerange(0, 3)\n"
        "s.hold_standard_streams()\n"
        "os._exit(os.open(os.devnull, os.O_RDONLY))\n"
    )

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 3


def test_everything_reaches_the_reader_in_order(ran: Callable[..., Ran]) -> None:
    assert ran("cli.demo", "say", "é", env={"PYTHONIOENCODING": "utf-8"}) == Ran(
        0, '{"said":"é"}\n', "saying é\n"
    )


def test_terminal_that_does_not_know_its_size_has_the_usual_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _file: os.terminal_size((0, 0)))

    assert stdout_size() == stderr_size() == (80, 24)


@pytest.mark.parametrize("error", [OSError, ValueError])
def test_stream_that_is_no_terminal_has_the_usual_size(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_file: int) -> os.terminal_size:
        raise error

    monkeypatch.setattr(os, "get_terminal_size", fail)

    assert stderr_size() == (80, 24)


def test_reader_that_leaves_while_it_is_waited_for_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        wait_for_reader(0)
        os.close(reading)
        with pytest.raises(ReaderGone):
            wait_for_reader(60)
