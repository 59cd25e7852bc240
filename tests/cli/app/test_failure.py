import contextlib
import errno
import io
import json
import os
import stat
from pathlib import Path
from typing import Any

import click
import pytest
from cli.demo_verbs import Unprintable
from hypothesis import given
from hypothesis import strategies as st
from refusing import raising

from uwf_git.cli.app.failure import _MEANT, describe_failure, last_words, tell, write_crash_log
from uwf_git.cli.app.guard import READER_GONE, run_guarded
from uwf_git.cli.app.lazy_group import LazyGroup
from uwf_git.cli.session import ReaderGone
from uwf_git.cli.uwf import UWF
from uwf_git.errors import Failure, Problem, Refused

INVALID = "invalid value: 'x' is not a"


def no_option(typed: str, *possible: str) -> click.NoSuchOption:
    return click.NoSuchOption(typed, possibilities=possible)


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        (click.UsageError("Missing command."), "missing command", None),
        (click.UsageError("XML is not allowed."), "XML is not allowed", None),
        (no_option("--forat", "--format"), "no such option", "did you mean"),
        (no_option("--at", "--format", "--patch", "--utc"), "no such option", None),
        (click.BadParameter("'x' is not a valid integer range."), f"{INVALID} whole number", None),
        (click.BadParameter("'x' is not a valid float range."), f"{INVALID} valid number", None),
        (click.NoSuchOption("--json"), "no such option", "did you mean --format json"),
        (click.UsageError("Odd. (Did you mean one of: '-a', '-b'?)"), "odd", "did you mean one"),
        (click.BadParameter("it is 0.5. No.", param_hint="-n"), "invalid value for -n", None),
    ],
)
def test_errors_of_click_are_reported_as_ours_are(
    error: click.ClickException, message: str, hint: str | None
) -> None:
    failure = describe_failure(error, {})

    assert (failure.code, failure.exit_status) == ("usage", 2)
    assert failure.message.startswith(message)
    assert not failure.message.endswith(".")
    assert (failure.hint or "").startswith(hint or "")
    assert (failure.hint is None) == (hint is None)


def test_other_errors_of_click_are_refusals() -> None:
    assert describe_failure(click.ClickException("It is closed."), {}) == Failure(
        "refused", "it is closed", 1
    )


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EACCES, "ls -ld"),
        (errno.EROFS, "--repo"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EIO, ""),
    ],
)
def test_errors_of_the_system_name_the_file_and_the_way_out(number: int, hint: str) -> None:
    failure = describe_failure(OSError(number, os.strerror(number), "/store/file"), {})

    assert failure.exit_status == 1
    assert failure.message == f"/store/file: {os.strerror(number)}"
    assert hint in (failure.hint or "")
    assert failure.facts == {"errno": errno.errorcode[number], "path": "/store/file"}


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.EXDEV, "Cross", b"/a\xff", None, "/b"), "/a\\xff -> /b: Cross"),
        (OSError(errno.EIO, "Broken"), "Broken"),
        (OSError("only words"), "only words"),
        (OSError(), "OSError"),
        (ConnectionRefusedError(), "ConnectionRefusedError"),
    ],
)
def test_errors_of_the_system_have_words_whatever_they_lack(error: OSError, message: str) -> None:
    assert describe_failure(error, {}).message == message


def test_lack_of_memory_is_no_bug() -> None:
    failure = describe_failure(MemoryError(), {})

    assert (failure.code, failure.exit_status) == ("out-of-memory", 1)


def test_bug_is_reported_with_its_log(tmp_path: Path) -> None:
    failure = describe_failure(KeyError("it"), {"XDG_STATE_HOME": str(tmp_path)})

    assert (failure.code, failure.exit_status) == ("internal", 70)
    assert failure.message == "internal error: KeyError: 'it'"
    assert str(failure.facts["log"]) in str(failure.hint)


def test_bug_without_a_place_for_its_log_is_reported_with_its_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/dev/null/nowhere")

    failure = describe_failure(KeyError("it"), {})

    assert failure.facts["trace"].startswith("KeyError")
    assert "trace above" in str(failure.hint)


def told(
    capsys: pytest.CaptureFixture[str], facts: dict[str, Any], *, as_json: bool = False
) -> str:
    tell(Failure("bad", "it is bad", 1, "do this", facts), as_json=as_json)
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_problems_are_listed_between_the_two(capsys: pytest.CaptureFixture[str]) -> None:
    problems = [
        {"path": "roles.planner", "message": "no such\nthing", "line": 12},
        {"path": "", "message": "empty", "line": 1},
        Problem("graph", "no way out"),
        "plain words\x1b",
    ]

    assert told(capsys, {"problems": problems}).splitlines() == [
        "error: it is bad",
        "  line 12: roles.planner: no such thing",
        "  line 1: empty",
        "  graph: no way out",
        "  plain words\\x1b",
        "hint: do this",
    ]


def test_last_lines_of_long_texts_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    stderr = "".join(f"line {number}\n" for number in range(100)) + "end\x1b[2J\n"

    lines = told(capsys, {"stderr": stderr, "note": "short"}).splitlines()

    assert lines[0] == "error: it is bad"
    assert lines[1:3] == ["  line 81", "  line 82"]
    assert lines[-2:] == ["  end\\x1b[2J", "hint: do this"]


def test_json_has_code_message_hint_and_then_the_facts(capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"problems": [Problem("a", "b", 3)], "path": b"x", "thread": "é"}

    line = told(capsys, facts, as_json=True)

    assert line.count("\n") == 1
    assert line.isascii()
    assert list(json.loads(line)["error"]) == ["code", "message", "hint", *facts]
    assert json.loads(line)["error"]["problems"] == [{"path": "a", "message": "b", "line": 3}]
    assert json.loads(line)["error"]["path"] == "b'x'"


def test_facts_cannot_hide_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    error = json.loads(told(capsys, {"code": "nice", "message": "well"}, as_json=True))["error"]

    assert error == {"code": "bad", "message": "it is bad", "hint": "do this"}


def looped() -> list[Any]:
    inner: list[Any] = []
    inner.append(inner)
    return inner


@pytest.mark.parametrize("fact", [float("nan"), {(1, 2): 3}, looped()])
def test_facts_that_json_cannot_hold_are_left_out(
    fact: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert json.loads(told(capsys, {"fact": fact}, as_json=True))["error"]["message"] == "it is bad"


@given(message=st.text(st.characters()), hint=st.text(st.characters(), min_size=1))
def test_any_words_are_one_line_each(message: str, hint: str) -> None:
    with contextlib.redirect_stderr(io.StringIO()) as said:
        tell(Failure("bad", message, 1, hint), as_json=False)

    first, second = said.getvalue().splitlines()
    assert first.startswith("error: ")
    assert second.startswith("hint: ")


def table(words: list[str]) -> LazyGroup | None:
    """Return the group that *words* lead to."""
    group: object = UWF
    for word in words:
        group = group.table.get(word) if isinstance(group, LazyGroup) else None
    return group if isinstance(group, LazyGroup) else None


@pytest.mark.parametrize("group", sorted(_MEANT))
def test_every_spelling_names_commands_that_exist_and_is_none_itself(group: str) -> None:
    here = table(group.split()[1:])
    assert here is not None
    assert [word for word in _MEANT[group] if word in here.table] == []
    meant = {each for told in _MEANT[group].values() for each in told}
    for command in sorted(each for each in meant if not each.startswith("git ")):
        words = [word for word in command.split()[1:] if not word.startswith("-")]
        there = table(words[:-1])
        assert there is not None, command
        assert words[-1] in there.table, command


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (Refused("no", hint="yes"), 1, "error: no\nhint: yes\n"),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
        (ReaderGone(), READER_GONE, ""),
    ],
)
def test_whatever_is_raised_ends_in_words_and_a_status(
    error: BaseException, status: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(raising(error), environ={}, as_json=lambda: False) == status
    assert capsys.readouterr() == ("", told)


def raised(error: Exception) -> Exception:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def log_of(error: Exception, environ: dict[str, str]) -> Path:
    path = write_crash_log(error, environ)
    assert path is not None
    return Path(path)


def test_log_has_the_trace_and_the_versions(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    log = log_of(raised(KeyError("it")), environ)

    for words in ("KeyError: 'it'", "test_failure.py", "uwf ", "python 3.", "dulwich 1."):
        assert words in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700
    assert log_of(KeyError(), environ) != log


@pytest.mark.parametrize("state", ["", "relative"])
def test_log_is_at_home_where_xdg_says_nothing_that_counts(state: str, tmp_path: Path) -> None:
    log = log_of(KeyError(), {"XDG_STATE_HOME": state, "HOME": str(tmp_path)})

    assert log.parent == tmp_path / ".local" / "state" / "uwf"


@pytest.mark.parametrize("home", ["", "/dev/null/home"])
def test_log_is_in_the_temporary_directory_where_no_other_place_is(home: str) -> None:
    log = log_of(KeyError(), {"HOME": home})

    assert log.parent == Path(os.environ["TMPDIR"])
    log.unlink()


def test_no_place_at_all_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/dev/null/nowhere")

    assert write_crash_log(KeyError(), {"HOME": "/dev/null"}) is None


def test_error_that_cannot_be_printed_is_logged_all_the_same(tmp_path: Path) -> None:
    error = raised(Unprintable())

    assert "Unprintable" in log_of(error, {"HOME": str(tmp_path)}).read_text()
    assert "Unprintable" in last_words(error)


def test_words_of_the_command_line_are_not_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["uwf", "thread", "start", "-p", "secret words"])
    environ = {"HOME": str(tmp_path), "SOME_API_KEY": "secret key"}

    assert "secret" not in log_of(raised(KeyError()), environ).read_text()
