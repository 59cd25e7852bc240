"""Node hashes: 13 upper-case Crockford symbols, the first 0 to F. digest.py computes them."""

import re
from typing import NewType

from uwf_git.errors import BadUsage
from uwf_git.model.crockford import fold

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
    """Parse the beginning of a node hash (or a whole one) as people type it.

    Raises:
        NotANodeHash: no node hash can begin so.
    """
    folded = fold(text)
    if not folded or _PREFIX.fullmatch(folded) is None:
        raise NotANodeHash(text)
    return folded
