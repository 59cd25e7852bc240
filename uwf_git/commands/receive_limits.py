"""Limits of what a store receives: as its git config sets them.

Owns: the names of the settings, what is taken without them, and reading git's numbers.
Knows nothing of: what is limited. Always true: a value that means nothing is told, never ignored:
a limit that somebody believes in must hold.
"""

import re
import sys
from typing import NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.git_config import GitConfig
from uwf_git.store.limited_objects import DEFAULT_BLOB_BYTES

MAX_BLOB_SIZE = "uwf.maxBlobSize"
RECEIVE_TIMEOUT = "uwf.receiveTimeout"

_DEFAULT_TIMEOUT_S = 600
_LONGEST_TIMEOUT_S = 24 * 3600

_NUMBER = re.compile(r"([0-9]{1,15})([kmg]?)", re.IGNORECASE)
_FACTORS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


class BadLimit(Refused):
    """A limit in git config is not a number."""

    code = "bad-limit"

    def __init__(self, name: str, value: str) -> None:
        super().__init__(
            f"{name} is {value[:40]!r} in the git config of this store, not a number",
            hint=f"who runs the server sets it: git config {name} 32m",
            setting=name,
        )


class ReceiveLimits(NamedTuple):
    """What a push may take."""

    most_blob_bytes: int
    timeout_s: int


def read_limits(config: GitConfig) -> ReceiveLimits:
    """Read the limits of a store; zero is none, as for git's own receive.maxInputSize.

    Raises:
        BadLimit: one of them is not a number as git writes them.
    """
    timeout_s = _read(config, RECEIVE_TIMEOUT, _DEFAULT_TIMEOUT_S) or _LONGEST_TIMEOUT_S
    return ReceiveLimits(
        most_blob_bytes=_read(config, MAX_BLOB_SIZE, DEFAULT_BLOB_BYTES) or sys.maxsize,
        timeout_s=min(timeout_s, _LONGEST_TIMEOUT_S),
    )


def _read(config: GitConfig, name: str, default: int) -> int:
    value = config.get(name)
    if value is None:
        return default
    match = _NUMBER.fullmatch(value)
    if match is None:
        raise BadLimit(name, value)
    return int(match[1]) * _FACTORS[match[2].lower()]
