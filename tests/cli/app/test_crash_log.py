import os
import stat
from pathlib import Path

import pytest

from uwf_git.cli.app.failure import last_words, write_crash_log


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even that")


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

    for words in ("KeyError: 'it'", "test_crash_log.py", "uwf ", "python 3.", "dulwich 1."):
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
