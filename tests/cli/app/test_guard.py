from collections.abc import Callable

import pytest

from uwf_git.cli.app.guard import READER_GONE, run_guarded
from uwf_git.cli.session import ReaderGone
from uwf_git.errors import Refused


def guarded(work: Callable[[], int], *, as_json: bool = False) -> int:
    return run_guarded(work, environ={}, as_json=lambda: as_json)


def raising(error: BaseException) -> Callable[[], int]:
    def work() -> int:
        raise error

    return work


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
    assert guarded(raising(error)) == status
    assert capsys.readouterr() == ("", told)
