import errno
import io
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.program import Ran
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses
from ulid import ULID

from uwf_git.cli.session import (
    STDERR,
    STDOUT,
    OutputFailed,
    ReaderGone,
    Session,
    hold_standard_streams,
    installed_version,
    note_typed_store,
    read_session,
    stdout_is_utf8,
    terminal_size,
    thread_id_at,
    wait_for_reader,
    wants_colour,
    with_typed_store,
    write_stderr,
    write_stdout,
)
from uwf_git.store.git.config import set_config
from uwf_git.store.store import NotAStore, create_store


class Terminal(io.StringIO):
    """A standard output that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("at_terminal", "environ", "setting", "chosen"),
    [
        (False, {}, "text", "json"),
        (True, {}, None, "text"),
        (True, {}, "yaml", "yaml"),
        (True, {"UWF_FORMAT": ""}, None, "text"),
        (True, {"UWF_THREAD_ID": "01J"}, "text", "json"),
        (True, {"UWF_FORMAT": "yaml", "UWF_THREAD_ID": "01J"}, "text", "yaml"),
        (True, {"UWF_FORMAT": "json"}, "text", "json"),
        (False, {"UWF_FORMAT": "TEXT"}, "json", "text"),
    ],
)
def test_variable_counts_then_who_reads_then_the_setting(
    *,
    at_terminal: bool,
    environ: dict[str, str],
    setting: str | None,
    chosen: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal() if at_terminal else io.StringIO())
    store = create_store(str(tmp_path / "store.git"))
    if setting is not None:
        set_config(f"{store.path}/config", "uwf.format", setting)
    session = read_session({**environ, "UWF_REPO": store.path, "HOME": str(tmp_path)})

    assert session.with_configured_format().output_format == chosen


def test_setting_of_the_user_counts_where_there_is_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    (tmp_path / ".gitconfig").write_text("[uwf]\n\tformat = json\n")

    assert read_session({"HOME": str(tmp_path)}).with_configured_format().output_format == "json"


def test_format_that_does_not_exist_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refuses("bad-format", match="UWF_FORMAT is 'xml', not a format"):
        read_session({"UWF_FORMAT": "xml"})
    monkeypatch.setattr(sys, "stdout", Terminal())
    (tmp_path / ".gitconfig").write_text("[uwf]\n\tformat = xml\n")
    with refuses("bad-format", match=r"uwf\.format is 'xml'"):
        read_session({"HOME": str(tmp_path)}).with_configured_format()


def test_empty_variables_count_as_unset() -> None:
    session = read_session({"UWF_REPO": "", "UWF_AGENT": "", "UWF_TEST_NOW": ""})

    assert (session.repo, session.agent) == (None, None)
    assert session.now_ms() > 1_700_000_000_000


def test_pinned_clock_counts_seconds_and_pinned_ids_count() -> None:
    for session in [read_session({"UWF_TEST_NOW": "1760000000000"}) for _ in range(2)]:
        assert [session.now_ms() for _ in range(3)] == [
            1_760_000_000_000,
            1_760_000_001_000,
            1_760_000_002_000,
        ]
        ids = [session.new_thread_id() for _ in range(2)]
        assert ids == ["01K742SG000000000000000001", "01K742SG000000000000000002"]
        assert ULID.from_str(ids[0]).milliseconds == 1_760_000_000_000


@pytest.mark.parametrize("text", ["noon", "-1", "1.5", "1" * 5000, str(2**48), "²"])
def test_clock_that_is_no_time_is_refused(text: str) -> None:
    with refuses("bad-test-clock", match="UWF_TEST_NOW is '"):
        read_session({"UWF_TEST_NOW": text})


def test_directory_that_is_gone_is_refused(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)  # the seal leads back
    gone.rmdir()

    with refuses("directory-gone", match="the current directory is gone"):
        read_session({})


@pytest.mark.parametrize(
    ("columns", "width"),
    [("132", 132), ("0", 80), ("", 80), ("x", 80), ("9" * 5000, 80), ("9" * 19, 10_000)],
)
def test_text_is_as_wide_as_the_terminal_says(
    columns: str, width: int, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(descriptor: int) -> os.terminal_size:
        raise OSError(errno.ENOTTY, f"{descriptor} is no terminal")

    monkeypatch.setattr(os, "get_terminal_size", nowhere)
    wide = session._replace(stdout_is_tty=True, environ={"COLUMNS": columns})

    assert wide.text_width() == width
    assert wide._replace(stdout_is_tty=False).text_width() is None


def test_default_store_is_made_only_when_asked_for(session: Session, tmp_path: Path) -> None:
    at_home = session._replace(cwd=str(tmp_path), environ={"HOME": str(tmp_path)})

    with pytest.raises(NotAStore):
        at_home.open_store()
    at_home.open_store(create=True)

    assert at_home.open_store()
    assert (tmp_path / ".uwf" / "store.git").is_dir()


def test_bare_repository_around_is_named_and_not_used(
    session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = create_store(str(tmp_path / "some repo.git")).path
    inside = session._replace(cwd=f"{bare}/refs", environ={"HOME": str(tmp_path)}, opened=[])

    with pytest.raises(NotAStore):
        inside.open_store()
    assert f"uwf --repo '{bare}'" in capsys.readouterr().err
    default = inside.open_store(create=True).path
    assert "is not used unless it is named" in capsys.readouterr().err
    inside._replace(cwd=default, opened=[]).open_store()
    inside._replace(repo=bare, opened=[]).open_store()
    # As while a line is completed.
    inside._replace(opened=None).open_store()
    assert capsys.readouterr().err == ""


def test_a_clock_before_1970_is_1970(monkeypatch: pytest.MonkeyPatch) -> None:
    session = read_session({})
    monkeypatch.setattr(time, "time_ns", lambda: -5_000_000_000)

    assert session.now_ms() == 0
    assert session.new_thread_id().startswith("0000000000")


@pytest.mark.parametrize(
    ("environ", "at_terminal", "elsewhere"),
    [
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ({"NO_COLOR": "", "FORCE_COLOR": ""}, True, False),
    ],
)
def test_colours_are_for_terminals_unless_the_user_says_otherwise(
    environ: dict[str, str], *, at_terminal: bool, elsewhere: bool
) -> None:
    assert wants_colour(environ, is_terminal=True) is at_terminal
    assert wants_colour(environ, is_terminal=False) is elsewhere


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


def test_text_that_the_encoding_lacks_is_written_as_escapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(taken, encoding="ascii"))

    hold_standard_streams()
    write_stdout("é")

    assert taken.getvalue() == b"\\xe9"


def test_unbuffered_python_writes_all_or_says_that_it_could_not() -> None:
    script = (
        "import os, uwf_git.cli.session as s\n"
        "s.hold_standard_streams()\n"
        "os.dup2(os.pipe()[1], 1)\n"
        "os.set_blocking(1, False)\n"
        "try: s.write_stdout('x' * 2**20)\n"
        "except s.OutputFailed: os._exit(7)\n"
    )

    assert subprocess.run([sys.executable, "-uc", script], check=False).returncode == 7


def test_closed_descriptors_are_opened_before_anything_else_gets_their_numbers() -> None:
    script = (
        "import os, uwf_git.cli.session as s\n"
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

    assert terminal_size(STDOUT) == terminal_size(STDERR) == (80, 24)


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


def test_what_is_advised_of_nodes_names_the_store_too() -> None:
    note_typed_store("a b.git")
    advised = with_typed_store("`json-cas get X` shows it; `uwf init c` and `uwf --repo d ui` go")
    note_typed_store("")
    named = "`json-cas --repo 'a b.git' get X` shows it; "
    assert advised == f"{named}`uwf init c` and `uwf --repo d ui` go"


def test_missing_package_has_no_known_version() -> None:
    assert installed_version("uwf-no-such-package") == "unknown"


TIMES = st.integers(0, 2**48 - 1)
ENTROPY = st.binary(min_size=10, max_size=10)


def test_example_of_the_specification() -> None:
    # https://github.com/ulid/javascript: its seedTime example begins so.
    assert thread_id_at(1469918176385, bytes(10)) == "01ARYZ6S410000000000000000"


@given(st.tuples(TIMES, ENTROPY), st.tuples(TIMES, ENTROPY))
def test_ids_sort_by_time_then_entropy(one: tuple[int, bytes], other: tuple[int, bytes]) -> None:
    assert (thread_id_at(*one) < thread_id_at(*other)) == (one < other)
