import errno
import os
from pathlib import Path

import click
import pytest

from uwf_git.cli.app.failure import describe_failure
from uwf_git.errors import Conflict
from uwf_git.model.problem import Failure


def test_our_own_errors_say_it_all_themselves() -> None:
    error = Conflict("thread 01J moved", hint="try again", thread="01J")

    assert describe_failure(error, {}) == Failure(
        "conflict", "thread 01J moved", 4, "try again", {"thread": "01J"}
    )


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        (click.UsageError("Missing command."), "missing command", None),
        (click.UsageError("XML is not allowed."), "XML is not allowed", None),
        (
            click.NoSuchOption("--forat", possibilities=["--format"]),
            "no such option",
            "did you mean",
        ),
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


def test_usage_error_names_the_help_of_its_command() -> None:
    context = click.Context(click.Command("uwf"), info_name="uwf")

    failure = describe_failure(click.UsageError("Too many.", context), {})

    assert failure.hint == "`uwf --help` shows how it is typed"


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


def test_interrupt_has_its_status() -> None:
    assert describe_failure(KeyboardInterrupt(), {}) == describe_failure(click.Abort(), {})
    assert describe_failure(KeyboardInterrupt(), {}).exit_status == 130


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
