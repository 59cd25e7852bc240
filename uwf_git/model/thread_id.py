"""Thread ids: ULIDs, 26 upper-case Crockford symbols, the first 0 to 7.

Source: https://github.com/ulid/spec; the first 10 symbols are milliseconds since 1970.
"""

import re
from typing import NewType

from uwf_git.errors import BadUsage
from uwf_git.model.crockford import ALPHABET, fold

ThreadId = NewType("ThreadId", str)

TIME_SYMBOLS = 10
_ID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_PREFIX = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{0,25}")


class NotAThreadId(BadUsage):
    """The text can never name a thread."""

    code = "not-a-thread-id"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text[:60]!r} is not a thread id",
            hint="thread ids are ULIDs, such as 01J7K9M2XNPQR5VWBCDF8G3H4T; `uwf thread list` "
            "shows yours",
            given=text[:60],
        )


def is_thread_id(text: str) -> bool:
    """Check that *text* is a thread id exactly as refs spell it."""
    return _ID.fullmatch(text) is not None


def read_time_ms(thread: ThreadId) -> int:
    """Return when a thread began, in milliseconds since 1970, by its id."""
    time_ms = 0
    for symbol in thread[:TIME_SYMBOLS]:
        time_ms = time_ms << 5 | ALPHABET.index(symbol)
    return time_ms


def parse_thread_prefix(text: str) -> str:
    """Parse the beginning of a thread id (or a whole one) as people type it.

    Raises:
        NotAThreadId: no thread id can begin so.
    """
    folded = fold(text)
    if _PREFIX.fullmatch(folded) is None:
        raise NotAThreadId(text)
    return folded
