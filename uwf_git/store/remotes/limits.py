"""Limits of what a store receives, from its git config; an invalid limit is an error."""

import sys
from typing import NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.git.config import GitConfig, parse_size
from uwf_git.store.objects.incoming_pack import (
    DEFAULT_OBJECTS,
    DEFAULT_REFS,
    MAX_BLOB_SIZE,
    MAX_FETCH_OBJECTS,
    MAX_FETCH_REFS,
    MAX_FETCH_SIZE,
    PackLimits,
)
from uwf_git.store.objects.json_file import DEFAULT_BLOB_BYTES

RECEIVE_TIMEOUT = "uwf.receiveTimeout"

_DEFAULT_TIMEOUT_S = 600
_LONGEST_TIMEOUT_S = 24 * 3600


class ReceiveLimits(NamedTuple):
    most_blob_bytes: int
    timeout_s: int


def read_receive_limits(config: GitConfig) -> ReceiveLimits:
    """Read the limits of a store; zero means no limit, as for git's receive.maxInputSize."""
    timeout_s = _read(config, RECEIVE_TIMEOUT, _DEFAULT_TIMEOUT_S) or _LONGEST_TIMEOUT_S
    return ReceiveLimits(
        most_blob_bytes=_read(config, MAX_BLOB_SIZE, DEFAULT_BLOB_BYTES) or sys.maxsize,
        timeout_s=min(timeout_s, _LONGEST_TIMEOUT_S),
    )


def read_fetch_limits(config: GitConfig) -> PackLimits:
    """Read the limits of what a fetch brings; zero means no limit."""
    most_bytes = _read(config, MAX_FETCH_SIZE, -1)
    return PackLimits(
        most_blob_bytes=read_receive_limits(config).most_blob_bytes,
        most_objects=_read(config, MAX_FETCH_OBJECTS, DEFAULT_OBJECTS) or sys.maxsize,
        most_bytes=None if most_bytes < 0 else most_bytes or sys.maxsize,
        most_refs=_read(config, MAX_FETCH_REFS, DEFAULT_REFS) or sys.maxsize,
    )


def _read(config: GitConfig, name: str, default: int) -> int:
    value = config.get(name)
    if value is None:
        return default
    size = parse_size(value)
    if size is None:
        raise Refused(
            f"{name} is {value[:40]!r} in the git config of this store, not a number",
            code="bad-receive-limit",
            hint=f"set it to a number, such as 500 or 32m: `git config {name} NUMBER`",
            setting=name,
        )
    return size
