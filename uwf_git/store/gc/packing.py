"""Pack the objects of a store, which git does: when it is due, and its log."""

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from uwf_git.debug_log import debug
from uwf_git.errors import Refused
from uwf_git.git_environment import without_local_variables
from uwf_git.store.disk.durable import remove_file
from uwf_git.store.gc.lock import GcRuns
from uwf_git.store.gc.small_packs import count_unpacked, list_own_packs
from uwf_git.store.git.config import GitConfig
from uwf_git.store.git.find_program import find_program
from uwf_git.store.git.program import ProgramFailed, run_program
from uwf_git.store.objects.pack_file import PACK
from uwf_git.store.store import Store
from uwf_git.store.trust import require_trusted

# The gc log: why packing in the background failed, shown to the user once.
#
# For a day after a failure packing does not start by itself, since it would fail again. Source:
# git's `gc.log`, git-gc(1).

_NO_RETRY_S = 24 * 3600
_MOST_BYTES = 10_000


def write_gc_log(store: Store, why: str) -> None:
    os.makedirs(store.local_path(), exist_ok=True)
    with open(_path(store), "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(why + "\n")


def take_gc_log(store: Store) -> str | None:
    """Remove and return the recorded failure; None if there is no record."""
    try:
        with open(_path(store), "rb") as file:
            why = file.read(_MOST_BYTES).decode(errors="replace").strip()
    except FileNotFoundError:
        return None
    remove_file(_path(store))
    return why or None


def has_failed_lately(store: Store) -> bool:
    try:
        # A time in the future is that of a clock which has been set back since.
        return abs(time.time() - os.stat(_path(store)).st_mtime) < _NO_RETRY_S
    except FileNotFoundError:
        return False


def _path(store: Store) -> str:
    return store.local_path("gc.log")


# When packing starts by itself, and what may be pruned: git's `gc.*` settings.
#
# The check costs three directory listings, and a stat of each small pack. Source: git-config(1),
# ``gc.auto`` and after; git's builtin/gc.c for the estimate.

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

    Objects that steps wrote are in small packs (small_packs.py). Older stores have loose objects,
    whose number is estimated from one of their 256 folders, as git does.
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


# Run `git gc` on a store, limited to objects.
#
# Refs, reflogs, work trees and the index are left out: git locks them by name, and a killed git
# would leave the lock. Source: git-gc(1), git-config(1) ``gc.*``; git's builtin/gc.c and
# builtin/repack.c.

_SETTINGS = {
    # pack_refs.py packs refs, and when killed leaves no packed-refs.lock.
    "gc.packRefs": "false",
    # Reflogs, work trees and recorded merges belong to a project, and are locked by name.
    "gc.reflogExpire": "never",
    "gc.reflogExpireUnreachable": "never",
    "gc.worktreePruneExpire": "never",
    "rerere.enabled": "false",
    # uwf does not read it, and a killed git leaves its lock, which stops every later gc.
    "gc.writeCommitGraph": "false",
    # Only for clones over HTTP without git on the server; it lists every ref, and is soon stale.
    "repack.updateServerInfo": "false",
    "gc.autoDetach": "false",
    # Programs that the store's own files and config name: a store may come from anywhere.
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
}
_NO_FETCHES = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
_RECENT = "gc.recentObjectsHook"

_BIG_PACK = "gc.bigPackThreshold"
_LARGE_BYTES = 8 * 1024 * 1024

_CHOSEN = {
    # `--aggressive` compares each with 250 others by default, which takes ten times as long, and
    # saves nothing here.
    "gc.aggressiveWindow": "10",
    "gc.aggressiveDepth": "50",
    # What has its deltas already is not compared again for each some hundred steps.
    _BIG_PACK: "",
    # Faster clones of large stores, but a step of 1 KB takes 3 % more space.
    "repack.writeBitmaps": "false",
}
"""Settings that those of the user and the store win over."""

_GRAPHS = ("commit-graph", "commit-graphs")

_RUNS = re.compile(rb"gc is already running on machine '([^']*)' pid ([0-9]+)")


def run_git_gc(store: Store, git: str, environ: Mapping[str, str], *, auto: bool) -> None:
    """Pack the objects of *store* with the program *git*; with *auto* leave large packs alone."""
    require_trusted(store, _RECENT, store.path)
    chosen = {name: value for name, value in _CHOSEN.items() if store.config.get(name) is None}
    has_large = False
    if _BIG_PACK in chosen:
        large_bytes = _find_large_bytes(store)
        chosen[_BIG_PACK] = str(large_bytes)
        has_large = _has_large_packs(store, large_bytes)
    # git compares no objects that it finds whole in one pack, unless told to; of steps all are.
    _run(store, git, environ, chosen, "--aggressive")
    if has_large and (not auto or find_due(store).objects):
        # All into one pack. What is in different packs git compares in any case.
        del chosen[_BIG_PACK]
        _run(store, git, environ, chosen)


def _run(
    store: Store, git: str, environ: Mapping[str, str], chosen: Mapping[str, str], *options: str
) -> None:
    settings = {**_SETTINGS, **chosen}
    if store.config.get_flag("uwf.fsync", default=True):
        # Includes objects that gc unpacks, which git does not sync by default.
        settings["core.fsync"] = "all"
    overrides = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    argv = [git, f"--git-dir={store.path}", *overrides, "gc", "--quiet", _expiry(store), *options]
    # A hook, which may call this, has variables set that would make git use another repository.
    clean = without_local_variables(environ) | _NO_FETCHES | {"LC_ALL": "C"}
    ran = run_program(argv, clean, cwd=store.path)
    if match := _RUNS.search(ran.stderr):
        raise GcRuns({"pid": int(match[2]), "host": match[1].decode(errors="replace")})
    if ran.status != 0:
        raise ProgramFailed(
            "git gc",
            f"failed: {ran.last_line or f'exit status {ran.status}'}",
            hint=f"`uwf verify` says what is damaged, if anything is; `git -C {store.path} gc` "
            "shows all that git says",
        )


def _find_large_bytes(store: Store) -> int:
    """Return from which size a pack is left alone: packs of steps never are."""
    own = list_own_packs(os.path.join(store.path, _PACKS))
    return max([_LARGE_BYTES, *(pack.size_bytes + 1 for pack in own)])


def _has_large_packs(store: Store, large_bytes: int) -> bool:
    folder = os.path.join(store.path, _PACKS)
    packs = (os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(PACK))
    # One may be united in this moment.
    with suppress(FileNotFoundError):
        return any(os.stat(path).st_size >= large_bytes for path in packs)
    return False


def _expiry(store: Store) -> str:
    expiry = find_expiry(store.config)
    # `git fsck` reports a commit-graph that names a pruned commit. uwf writes no graphs: where
    # there is one, pruning is left to the git that wrote it.
    graphs = (os.path.join(store.path, "objects", "info", name) for name in _GRAPHS)
    if expiry is None or any(map(os.path.exists, graphs)):
        return "--no-prune"
    return f"--prune=@{expiry}"


# Pack the objects of a store, which git does; count its files.

NO_GIT = "there is no git on the PATH, so the store cannot be packed; steps go on without"

_BLOCK_BYTES = 512
_FOLDER_DIGITS = 2


class Counted(NamedTuple):
    loose_objects: int
    packs: int
    size_bytes: int


def pack_objects(store: Store, environ: Mapping[str, str], *, auto: bool = False) -> None:
    """Pack the objects of *store*, whose gc lock the caller holds; with *auto* not large packs."""
    git = find_program("git", environ)
    if git is None:
        raise Refused(NO_GIT, code="no-git", hint="install git, or put it on the PATH")
    run_git_gc(store, git, environ, auto=auto)


def count_files(store: Store) -> Counted:
    """Count the objects and packs of *store*; slow for very many loose objects."""
    loose = packs = size = 0
    objects = os.path.join(store.path, "objects")
    for folder, _folders, names in os.walk(objects):
        size += sum(_size(os.path.join(folder, name)) for name in names)
        packs += sum(name.endswith(".pack") for name in names)
        if len(os.path.basename(folder)) == _FOLDER_DIGITS:
            loose += len(names)
    for folder, _folders, names in os.walk(os.path.join(store.path, "refs")):
        size += sum(_size(os.path.join(folder, name)) for name in names)
    return Counted(loose, packs, size + _size(os.path.join(store.path, "packed-refs")))


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_blocks * _BLOCK_BYTES
    except FileNotFoundError:
        # It was packed in this moment, or never existed.
        return 0
