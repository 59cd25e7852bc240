"""Errors by their codes, which are stable: most have no class of their own."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeGuard

import pytest

from uwf_git.errors import UwfError


@contextmanager
def refuses(
    *expected: str | type[BaseException], match: str | None = None
) -> Iterator[pytest.ExceptionInfo[UwfError]]:
    """Expect a ``UwfError`` with one of the codes, or of one of the classes."""
    with pytest.raises(UwfError, match=match) as caught:
        yield caught
    classes = tuple(each for each in expected if isinstance(each, type))
    error = caught.value
    assert error.code in expected or isinstance(error, classes), (error.code, expected)


def is_refused(error: BaseException | None, code: str) -> TypeGuard[UwfError]:
    """Tell whether an error that was returned is the refusal with this code."""
    return isinstance(error, UwfError) and error.code == code
