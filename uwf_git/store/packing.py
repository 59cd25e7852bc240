"""Pack the objects of a store, which git does: when it is due, and its log."""

import functools
import itertools
import os
import re
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from uwf_git.debug_log import debug
from uwf_git.errors import Conflict, Refused
from uwf_git.model.names import Oid, is_oid
from uwf_git.store.durable import list_names, read_if_there, read_local, remove_file, replace_file
from uwf_git.store.git.config import SCALES, GitConfig, find_program
from uwf_git.store.git.program import ProgramFailed, run_program
from uwf_git.store.locks import Holder, describe_holder, hold_file, is_held, this_process
from uwf_git.store.objects.commit import read_raw_commit
from uwf_git.store.objects.objects import has_object
from uwf_git.store.objects.pack_file import INDEX, OID_BYTES, PACK
from uwf_git.store.objects.pack_writer import KEEP, is_kept
from uwf_git.store.store import Store
from uwf_git.store.trust import require_trusted
from uwf_git.surroundings import find_boot_time_s, read_process, without_local_variables

# Hold the gc lock of a store, and read and clear git's own, `gc.pid`.
#
# A lock of a dead process blocks no gc, even if its pid was reused; one that may be of a living
# process is never removed. Source: git's builtin/gc.c, `lock_repo_for_gc`.

_GIT_LOCK = "gc.pid"
_HOLDER = re.compile(rb"([0-9]{1,10}) (\S{1,256})\n?")

# How long git believes in a gc of another machine, which it cannot check.
_BELIEVED_S = 12 * 3600
# Our own lock without a named holder: ``is_gc_running`` holds it for a moment.
_HELD_PATIENCE_S = 0.5
# git holds gc.pid.lock for a single write. If a slower git is still alive, two gcs run side by
# side, which git allows (`git gc --force`).
_PATIENCE_S = 5.0
_PAUSE_S = 0.05
# File times and process times come from different clocks.
_CLOCK_S = 2.0


class GcRuns(Conflict):
    code = "gc-runs"

    def __init__(self, holder: Holder) -> None:
        who = describe_holder(holder) or "by an unknown process"
        super().__init__(
            f"another gc is at work on this store ({who})",
            hint="nothing to do: that gc does the same work",
            holder=holder,
        )


@contextmanager
def hold_gc_lock(store: Store) -> Iterator[None]:
    holder = this_process(time.time_ns() // 1_000_000)
    path = store.local_path("locks", "gc")
    with hold_file(path, holder, patience_s=_HELD_PATIENCE_S, busy=GcRuns):
        check_git_lock(store)
        yield


def is_gc_running(store: Store) -> bool:
    return is_held(store.local_path("locks", "gc"))


def is_git_gc_running(store: Store) -> bool:
    """Check whether a gc of git may be at work; what a killed one left counts as nothing."""
    found = _read(os.path.join(store.path, _GIT_LOCK))
    return found is not None and found.may_be_held


def check_git_lock(store: Store) -> None:
    """Check that no gc of git is at work, and remove the lock that a killed one left."""
    path = os.path.join(store.path, _GIT_LOCK)
    _clear_lock_of_lock(path + ".lock")
    found = _read(path)
    if found is None or found.pid is None:
        return
    if found.may_be_held:
        since = int(found.left.st_mtime * 1000)
        raise GcRuns({"pid": found.pid, "host": found.host, "since": since})
    if found.is_still_at(path):
        remove_file(path)


def _clear_lock_of_lock(path: str) -> None:
    """Remove `gc.pid.lock` if its git is dead: it would block every later gc."""
    deadline = time.monotonic() + _PATIENCE_S
    found = _read(path)
    while found is not None and found.is_still_at(path):
        # A git that has not written its pid yet may be alive.
        is_dead = found.pid is not None and not found.may_be_held
        if is_dead or time.monotonic() > deadline:
            remove_file(path)
            return
        time.sleep(_PAUSE_S)


def may_live(pid: int, host: str, left: os.stat_result) -> bool:
    """Tell whether the process *pid* of *host*, which wrote a file *left*, may still be alive."""
    if host != os.uname().nodename:
        return time.time() - left.st_mtime < _BELIEVED_S
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    process, boot_s = read_process(pid), find_boot_time_s()
    if process is None or boot_s is None:
        return True
    began_s = boot_s + process.start / os.sysconf("SC_CLK_TCK")
    # A process that began after the file was written has the number of the writer by chance.
    return not process.has_ended and began_s < left.st_mtime + _CLOCK_S


class _GitLock(NamedTuple):
    """A lock file of git, as it was read."""

    left: os.stat_result
    pid: int | None
    """None: git cannot read it either, and takes the lock."""

    host: str

    @property
    def may_be_held(self) -> bool:
        return self.pid is not None and may_live(self.pid, self.host, self.left)

    def is_still_at(self, path: str) -> bool:
        found = _read(path)
        return (
            found is not None
            and os.path.samestat(found.left, self.left)
            and found.left.st_mtime_ns == self.left.st_mtime_ns
        )


def _read(path: str) -> _GitLock | None:
    try:
        with open(path, "rb") as file:
            match, left = _HOLDER.fullmatch(file.read(1000)), os.fstat(file.fileno())
    except FileNotFoundError:
        return None
    pid, host = (int(match[1]), match[2].decode(errors="replace")) if match else (None, "")
    return _GitLock(left, pid, host)


# List the packs that steps wrote and that nobody has packed since.
#
# git, a fetch and `uwf gc` name a pack after its checksum, the writers of steps draw the name by
# lot: so the last bytes of an index tell which are packed already. Names stay, so each is read
# once.

MOST_PACKS = 16
"""More small packs than these are united."""

LARGE_BYTES = 32 * 1024 * 1024
"""From this size a pack is not copied any more."""

# An index has a head and a name, a CRC-32 and an offset for each object; gitformat-pack(5).
NAMES_AT = 8 + 256 * 4
_EMPTY_INDEX_BYTES = NAMES_AT + 2 * OID_BYTES
_OBJECT_BYTES = OID_BYTES + 4 + 4
_MULTI = "multi-pack-index"
_MULTI_HEAD = struct.Struct(">4s4BI")
_CHUNK = struct.Struct(">4sQ")
_NAMES = b"PNAM"


class SmallPack(NamedTuple):
    """A pack without deltas, and without files of git beside it."""

    path: str

    objects: int

    size_bytes: int
    mtime_ns: int


def list_stems(folder: str) -> list[str]:
    """List the packs in *folder*, without their endings, that have an index and no other file.

    git puts others beside its own: `.keep`, `.rev`, `.bitmap`, `.mtimes`, `.promisor`.
    """
    endings: dict[str, set[str]] = {}
    for name in list_names(folder):
        stem, ending = os.path.splitext(name)
        endings.setdefault(stem, set()).add(ending)
    return sorted(stem for stem, found in endings.items() if found == {PACK, INDEX})


def has_many_packs(git_dir: str) -> bool:
    """Check, for the price of one listing, whether some packs may have to be united."""
    return len(list_stems(os.path.join(git_dir, "objects", "pack"))) > MOST_PACKS


def list_small_packs(folder: str) -> list[SmallPack]:
    """List the packs in *folder* that steps wrote and that are still to be copied."""
    return [pack for pack in list_own_packs(folder) if pack.size_bytes < LARGE_BYTES]


def list_own_packs(folder: str) -> list[SmallPack]:
    """List the packs in *folder* that steps wrote, the smallest first.

    Packs with a `.keep` and packs in git's multi-pack-index are left out: git relies on these.
    """
    stems = list_stems(folder)
    by_git = _read_multi_pack_index(folder)
    found = (_look_at(os.path.join(folder, stem)) for stem in stems if stem not in by_git)
    # Only after the listing: a `.keep` is older than the name of its pack.
    packs = [pack for pack in found if pack is not None and not is_kept(pack.path)]
    return sorted(packs, key=lambda pack: (pack.size_bytes, pack.path))


def remove_packs(packs: Iterable[SmallPack]) -> None:
    """Remove *packs* whose objects are elsewhere; not what git or a person relies on by now."""
    by_folder: dict[str, set[str]] = {}
    for pack in packs:
        folder, stem = os.path.split(pack.path)
        if folder not in by_folder:
            by_folder[folder] = _read_multi_pack_index(folder)
        if stem not in by_folder[folder] and not is_kept(pack.path):
            # The index first, as git does: a pack without one is missing for all.
            remove_file(pack.path + INDEX)
            remove_file(pack.path + PACK)


def count_unpacked(folder: str, *, up_to: int) -> int:
    """Count the objects in packs that steps wrote; beyond *up_to* only whether there are more.

    Most often the sizes of the files decide, and no file is opened.
    """
    counts = {os.path.join(folder, stem): 0 for stem in list_stems(folder)}
    for path in counts:
        # It was united or packed in this moment.
        with suppress(FileNotFoundError):
            counts[path] = _count_objects(os.stat(path + INDEX).st_size)
    total = sum(counts.values())
    for path in sorted(counts, key=lambda path: -counts[path]):
        if total <= up_to:
            break
        if is_packed(path):
            total -= counts[path]
    return total


@functools.lru_cache(maxsize=1000)
def is_packed(path: str) -> bool:
    """Check whether the pack at *path*, without its ending, is named after its checksum."""
    try:
        with open(path + INDEX, "rb", buffering=0) as file:
            file.seek(-2 * OID_BYTES, os.SEEK_END)
            return path.endswith(f"-{file.read(OID_BYTES).hex()}")
    except OSError:
        return True


def _read_multi_pack_index(folder: str) -> set[str]:
    """List the packs, without endings, that git's multi-pack-index names: gitformat-pack(5)."""
    content = read_if_there(os.path.join(folder, _MULTI))
    try:
        _magic, _version, _hash, chunks, _bases, _packs = _MULTI_HEAD.unpack_from(content)
        places = [
            _CHUNK.unpack_from(content, _MULTI_HEAD.size + number * _CHUNK.size)
            for number in range(chunks + 1)
        ]
    except struct.error:
        return set()
    spans = itertools.pairwise(places)
    names = b"".join(content[at:end] for (kind, at), (_next, end) in spans if kind == _NAMES)
    return {os.path.splitext(os.fsdecode(name))[0] for name in names.split(b"\0") if name}


def _look_at(path: str) -> SmallPack | None:
    try:
        pack, index = os.stat(path + PACK), os.stat(path + INDEX)
    except FileNotFoundError:
        return None
    if is_packed(path):
        return None
    return SmallPack(path, _count_objects(index.st_size), pack.st_size, pack.st_mtime_ns)


def _count_objects(index_bytes: int) -> int:
    return max(index_bytes - _EMPTY_INDEX_BYTES, 0) // _OBJECT_BYTES


# The gc log: why packing in the background failed, shown to the user once.
#
# For a day after a failure packing does not start by itself, since it would fail again. Source:
# git's `gc.log`, git-gc(1).

_NO_RETRY_S = 24 * 3600
_MOST_BYTES = 10_000


def write_gc_log(store: Store, why: str) -> None:
    replace_file(_path(store), f"{why}\n".encode(errors="backslashreplace"), durable=False)


def take_gc_log(store: Store) -> str | None:
    """Remove and return the recorded failure; None if there is no record."""
    why = read_local(_path(store))[:_MOST_BYTES].decode(errors="replace").strip()
    remove_file(_path(store))
    return why or None


def has_failed_lately(store: Store) -> bool:
    with suppress(FileNotFoundError):
        # A time in the future is that of a clock which has been set back since.
        return abs(time.time() - os.stat(_path(store)).st_mtime) < _NO_RETRY_S
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

_PRUNE = "gc.pruneExpire"

# From its first object to its ref a step takes milliseconds, a large fetch minutes.
_SHORTEST_EXPIRE_S = 24 * 3600


class Due(NamedTuple):
    objects: bool
    refs: bool

    def __bool__(self) -> bool:
        return self.objects or self.refs


def find_due(store: Store) -> Due:
    """Return which parts of *store* are due for packing.

    Objects that steps wrote are in small packs. Older stores have loose objects, whose number is
    estimated from one of their 256 folders, as git does.
    """
    # How many unpacked objects and packs a store may have before gc packs them; 0: no limit.
    most_unpacked = read_count(store.config, "gc.auto", _MOST_UNPACKED)
    most_packs = read_count(store.config, "gc.autoPackLimit", _MOST_PACKS)
    if not most_unpacked:
        return Due(objects=False, refs=False)
    sample = sum(
        len(name) == _LOOSE_NAME_DIGITS for name in list_names(os.path.join(store.path, _SAMPLE))
    )
    written = count_unpacked(os.path.join(store.path, _PACKS), up_to=most_unpacked)
    is_full = sample > -(-most_unpacked // _FOLDERS) or written > most_unpacked
    objects = is_full or 0 < most_packs < _count_packs(store)
    due = Due(
        objects, refs=len(list_names(os.path.join(store.path, "refs", "archive"))) > _MOST_REFS
    )
    debug("SFZHPMG6", "packing asked for", loose=sample * _FOLDERS, written=written, due=bool(due))
    return due


def is_detached(config: GitConfig) -> bool:
    return config.get_flag("gc.autoDetach", default=True)


def find_expiry(store: Store, git: str, environ: Mapping[str, str]) -> int | None:
    """Return the time (s since 1970) before which unreachable objects are pruned; None: never.

    That is ``gc.pruneExpire`` as *git* reads it, but at least a day ago: `now` would remove what a
    step has just written and not yet referenced.
    """
    told = f"{_PRUNE}={store.config.get(_PRUNE) or '2.weeks.ago'}"
    argv = [git, f"--git-dir={store.path}", "-c", told, "config", "--type=expiry-date", _PRUNE]
    answer = run_program(argv, without_local_variables(environ)).stdout.strip()
    # git answers 0 for "never". What it cannot read as a date makes its gc fail as well.
    expiry_s = int(answer) if answer.isdigit() else 0
    return min(expiry_s, int(time.time()) - _SHORTEST_EXPIRE_S) if expiry_s else None


def read_count(config: GitConfig, name: str, default: int) -> int:
    match = re.fullmatch(r"\s*([-+]?[0-9]{1,9})([kmg]?)\s*", (config.get(name) or "").lower())
    return max(int(match[1]) * SCALES[match[2]], 0) if match else default


def _count_packs(store: Store) -> int:
    names = set(list_names(os.path.join(store.path, _PACKS)))
    packs = (name.removesuffix(PACK) for name in names if name.endswith(PACK))
    return sum(pack + KEEP not in names for pack in packs)


# Run `git gc` on a store, limited to objects.
#
# Refs, reflogs, work trees and the index are left out: git locks them by name, and a killed git
# would leave the lock. Source: git-gc(1), git-config(1) ``gc.*``; git's builtin/gc.c and
# builtin/repack.c.

NO_GIT = "there is no git on the PATH, so the store cannot be packed; steps go on without"

_SETTINGS = {
    # tidy.py packs refs, and when killed leaves no packed-refs.lock.
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
NO_FETCHES = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
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


def pack_objects(store: Store, environ: Mapping[str, str], *, auto: bool = False) -> None:
    """Pack the objects of *store*, whose gc lock the caller holds; with *auto* not large packs."""
    git = find_program("git", environ)
    if git is None:
        raise Refused(NO_GIT, code="no-git", hint="install git, or put it on the PATH")
    require_trusted(store, _RECENT, store.path)
    chosen = {name: value for name, value in _CHOSEN.items() if store.config.get(name) is None}
    has_large = False
    if _BIG_PACK in chosen:
        # Packs of steps are never left alone.
        own = list_own_packs(os.path.join(store.path, _PACKS))
        large_bytes = max([_LARGE_BYTES, *(pack.size_bytes + 1 for pack in own)])
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
    # A hook, which may call this, has variables set that would make git use another repository.
    clean = without_local_variables(environ) | NO_FETCHES | {"LC_ALL": "C"}
    expiry = _expiry(store, git, clean)
    argv = [git, f"--git-dir={store.path}", *overrides, "gc", "--quiet", expiry, *options]
    ran = run_program(argv, clean, cwd=store.path)
    if match := _RUNS.search(ran.stderr):
        raise GcRuns({"pid": int(match[2]), "host": match[1].decode(errors="replace")})
    if ran.status != 0:
        # The cause comes first: "No space left on device", then "failed to run repack".
        told = " ".join(ran.stderr.decode(errors="replace").split())[:1000]
        hint = "`df` shows whether the disk is full, and `uwf verify` whether anything is damaged"
        raise ProgramFailed("git gc", f"failed: {told or f'exit status {ran.status}'}", hint=hint)


def _has_large_packs(store: Store, large_bytes: int) -> bool:
    folder = os.path.join(store.path, _PACKS)
    packs = (os.path.join(folder, name) for name in list_names(folder) if name.endswith(PACK))
    # One may be united in this moment.
    with suppress(FileNotFoundError):
        return any(os.stat(path).st_size >= large_bytes for path in packs)
    return False


def _expiry(store: Store, git: str, environ: Mapping[str, str]) -> str:
    expiry = find_expiry(store, git, environ)
    # `git fsck` reports a commit-graph that names a pruned commit. uwf writes no graphs: where
    # there is one, pruning is left to the git that wrote it.
    graphs = (os.path.join(store.path, "objects", "info", name) for name in _GRAPHS)
    if expiry is None or any(map(os.path.exists, graphs)) or has_cut_history(store):
        return "--no-prune"
    return f"--prune=@{expiry}"


def has_cut_history(store: Store) -> bool:
    """Return whether a plain `git fetch --depth` marked a commit of ours: git needs none behind."""
    marks = read_if_there(os.path.join(store.path, "shallow")).decode(errors="replace").split()
    return any(
        b"\nUwf-Format: " in read_raw_commit(store.objects, Oid(each))
        for each in marks
        if is_oid(each) and has_object(store.objects, Oid(each))
    )


# Count the files of a store.

_BLOCK_BYTES = 512
_FOLDER_DIGITS = 2


class Counted(NamedTuple):
    loose_objects: int
    packs: int
    size_bytes: int


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
    with suppress(FileNotFoundError):
        return os.lstat(path).st_blocks * _BLOCK_BYTES
    # It was packed in this moment, or never existed.
    return 0
