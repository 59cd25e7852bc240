"""Errors by their codes, which are stable: most have no class of their own."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeGuard

import pytest

from uwf_git.errors import UwfError


@contextmanager
def refuses(
    *expected: str | type[BaseException], match: str | None = None, status: int | None = None
) -> Iterator[pytest.ExceptionInfo[UwfError]]:
    """Expect a ``UwfError`` with one of the codes, or of one of the classes, and its status."""
    with pytest.raises(UwfError, match=match) as caught:
        yield caught
    classes = tuple(each for each in expected if isinstance(each, type))
    error = caught.value
    assert error.code in expected or isinstance(error, classes), (error.code, expected)
    assert status in {None, error.exit_status}, error.exit_status


def is_refused(error: BaseException | None, code: str) -> TypeGuard[UwfError]:
    """Tell whether an error that was returned is the refusal with this code."""
    return isinstance(error, UwfError) and error.code == code


def raising(error: BaseException) -> Callable[..., NoReturn]:
    """Return a function that raises *error*, whatever it is given."""

    def fail(*_given: object, **_more: object) -> NoReturn:
        raise error

    return fail


def as_no_root(call: Callable[..., int]) -> Callable[..., int]:
    """Return *call*, an ``os.open`` that opens no file without rights, which root may."""

    def opened(path: Any, *given: Any, **more: Any) -> int:
        is_there = isinstance(path, str) and os.path.isfile(path)
        if is_there and not stat.S_IMODE(os.stat(path).st_mode):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return call(path, *given, **more)

    return opened
