"""Names that content and time give: node hashes, thread ids, object ids of git."""

import re
from typing import NewType

from uwf_git.errors import BadUsage

# Crockford Base32: the alphabet of node hashes and thread ids, and the form of a 64-bit number.
#
# Source: https://www.crockford.com/base32.html; json-cas writes its hashes this way.

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

# A table, not `upper`, which maps some other letters into the alphabet ("ß" to "SS").
_FORGIVEN = str.maketrans("abcdefghijklmnopqrstuvwxyzILO", "ABCDEFGH1JK1MN0PQRSTUVWXYZ110")


def encode_u64(number: int) -> str:
    """Write *number* (0 to 2**64-1) as 13 symbols, most significant first (at most F)."""
    return "".join([ALPHABET[(number >> shift) & 31] for shift in range(60, -1, -5)])


def fold(text: str) -> str:
    """Return *text* in upper case, I and L as 1, O as 0; other symbols stay for the caller."""
    return text.translate(_FORGIVEN)


# Node hashes: 13 upper-case Crockford symbols, the first 0 to F. node.py computes them.

NodeHash = NewType("NodeHash", str)

PATTERN = "^[0-9A-F][0-9A-HJKMNP-TV-Z]{12}$"
"""The pattern of a node hash in JSON Schema."""

_HASH = re.compile(PATTERN.strip("^$"))
_PREFIX = re.compile(r"(?:[0-9A-F][0-9A-HJKMNP-TV-Z]{0,12})?")


class NotANodeHash(BadUsage):
    """The text can never name a node."""

    code = "not-a-node-hash"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text[:60]!r} is not a node hash",
            hint="a node hash has 13 symbols of Crockford Base32, such as 8FWKR3TN5V1QA",
            given=text[:60],
        )


def is_node_hash(text: str) -> bool:
    """Check that *text* is a node hash exactly as nodes are named (upper case, 13 symbols)."""
    return _HASH.fullmatch(text) is not None


def parse_node_prefix(text: str) -> str:
    """Parse the beginning of a node hash (or a whole one) as people type it."""
    folded = fold(text)
    if not folded or _PREFIX.fullmatch(folded) is None:
        raise NotANodeHash(text)
    return folded


# Thread ids: ULIDs, 26 upper-case Crockford symbols, the first 0 to 7.
#
# Source: https://github.com/ulid/spec; the first 10 symbols are milliseconds since 1970.

ThreadId = NewType("ThreadId", str)

TIME_SYMBOLS = 10
_ID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_ID_PREFIX = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{0,25}")


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
    return _ID.fullmatch(text) is not None


def build_thread_id(time_ms: int, random: bytes) -> ThreadId:
    number = int.from_bytes(time_ms.to_bytes(6, "big") + random)
    return ThreadId("".join(ALPHABET[number >> shift & 31] for shift in range(125, -1, -5)))


def read_time_ms(thread: ThreadId) -> int:
    """Return when a thread began, in milliseconds since 1970, by its id."""
    time_ms = 0
    for symbol in thread[:TIME_SYMBOLS]:
        time_ms = time_ms << 5 | ALPHABET.index(symbol)
    return time_ms


def parse_thread_prefix(text: str) -> str:
    """Parse the beginning of a thread id (or a whole one) as people type it."""
    folded = fold(text)
    if _ID_PREFIX.fullmatch(folded) is None:
        raise NotAThreadId(text)
    return folded


# Paths of files below a work directory, as a workflow may name them.


def check_path_below(path: str) -> str | None:
    """Return why *path* cannot name a file below a directory, or None; links are not known here."""
    parts = path.split("/")
    if any(ord(each) < ord(" ") for each in path):
        return "has a line break, or another control character, in its name"
    if path.startswith(("/", "~")):
        return "has to be relative to the work directory"
    if ".." in parts:
        return "leads out of the work directory"
    if any(part.lower() == ".git" for part in parts):
        return "is git's own"
    if not path.strip() or parts[-1] in ("", "."):
        return "names no file"
    return None


# Object ids: 40 lower-case hexadecimal digits, as git prints them.

Oid = NewType("Oid", str)
"""A git object id: 40 lower-case hex digits."""


_OID = re.compile(rb"[0-9a-f]{40}")


def is_oid(text: str) -> bool:
    return text.isascii() and _OID.fullmatch(text.encode()) is not None
