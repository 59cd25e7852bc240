"""When packing starts by itself, and what may be pruned: git's `gc.*` settings.

The check costs three directory listings, and a stat of each small pack.
Source: git-config(1), ``gc.auto`` and after; git's builtin/gc.c for the estimate.
"""

import os
import re
import time
from typing import NamedTuple

from uwf_git.debug_log import debug
from uwf_git.store.gc.small_packs import count_unpacked
from uwf_git.store.git.config import GitConfig
from uwf_git.store.store import Store

_MOST_UNPACKED = 6700
_MOST_PACKS = 50
# A list of threads opens each loose ref; up to here that is fast.
_MOST_REFS = 1000

_FOLDERS = 256
_SAMPLE = os.path.join("objects", "17")
_LOOSE_NAME_DIGITS = 38
_PACKS = os.path.join("objects", "pack")

_DAY_S = 24 * 3600
_EXPIRE_S = 14 * _DAY_S
# From its first object to its ref a step takes milliseconds, a large fetch minutes.
_SHORTEST_EXPIRE_S = _DAY_S
_SCALES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


class Due(NamedTuple):
    """Which parts of a store are due for packing."""

    objects: bool
    refs: bool

    def __bool__(self) -> bool:
        return self.objects or self.refs


class GcLimits(NamedTuple):
    """How many unpacked objects and packs a store may have before gc packs them; 0: no limit."""

    unpacked: int
    packs: int


def find_due(store: Store) -> Due:
    """Return which parts of *store* are due for packing.

    Objects that steps wrote are in packs of theirs (small_packs.py), in older stores loose; these
    are estimated from one of their 256 folders, as git does.
    """
    limits = read_gc_limits(store.config)
    if not limits.unpacked:
        return Due(objects=False, refs=False)
    sample = sum(len(name) == _LOOSE_NAME_DIGITS for name in _list(store, _SAMPLE))
    written = count_unpacked(os.path.join(store.path, _PACKS), up_to=limits.unpacked)
    is_full = sample > -(-limits.unpacked // _FOLDERS) or written > limits.unpacked
    objects = is_full or 0 < limits.packs < _count_packs(store)
    due = Due(objects, refs=len(_list(store, os.path.join("refs", "archive"))) > _MOST_REFS)
    debug("SFZHPMG6", "packing asked for", loose=sample * _FOLDERS, written=written, due=bool(due))
    return due


def read_gc_limits(config: GitConfig) -> GcLimits:
    """Read ``gc.auto`` and ``gc.autoPackLimit``."""
    return GcLimits(
        _read_count(config, "gc.auto", _MOST_UNPACKED),
        _read_count(config, "gc.autoPackLimit", _MOST_PACKS),
    )


def is_detached(config: GitConfig) -> bool:
    """Check whether automatic packing runs in the background."""
    return config.get_flag("gc.autoDetach", default=True)


def find_expiry(config: GitConfig) -> int | None:
    """Return the time (s since 1970) before which unreachable objects are pruned; None: never.

    That is ``gc.pruneExpire``, but at least a day ago: `now` would remove what a step has just
    written and not yet referenced.
    """
    now_s = int(time.time())
    text = (config.get("gc.pruneExpire") or "").strip()
    if text.lower() in {"never", "false"}:
        return None
    return min(_parse_date(text, now_s - _EXPIRE_S), now_s - _SHORTEST_EXPIRE_S)


def _parse_date(text: str, default: int) -> int:
    from dulwich.approxidate import parse_approxidate  # noqa: PLC0415 (only packing needs it)

    try:
        return parse_approxidate(text) if text else default
    except (ValueError, OverflowError):
        return default


def _read_count(config: GitConfig, name: str, default: int) -> int:
    match = re.fullmatch(r"\s*([-+]?[0-9]{1,9})([kmg]?)\s*", (config.get(name) or "").lower())
    return max(int(match[1]) * _SCALES[match[2]], 0) if match else default


def _count_packs(store: Store) -> int:
    names = _list(store, _PACKS)
    kept = {name.removesuffix(".keep") for name in names if name.endswith(".keep")}
    packs = (name.removesuffix(".pack") for name in names if name.endswith(".pack"))
    return sum(name not in kept for name in packs)


def _list(store: Store, folder: str) -> list[str]:
    try:
        return os.listdir(os.path.join(store.path, folder))
    except FileNotFoundError:
        return []
