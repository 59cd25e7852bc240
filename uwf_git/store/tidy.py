"""Tidy a store: pack its refs, unite its packs, and remove what a dead process left."""

import hashlib
import os
import re
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial

from dulwich.objects import ObjectID, Tag
from dulwich.refs import Ref, check_ref_format

from uwf_git.debug_log import debug
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId, is_thread_id
from uwf_git.store.durable import (
    TEMPORARY,
    list_entries,
    list_names,
    read_if_there,
    remove_file,
    replace_file,
)
from uwf_git.store.git.config import is_shared
from uwf_git.store.locks import (
    PACKED_REFS,
    RefLocked,
    break_dead_locks,
    hold_lock,
    hold_ref_lock,
    markers,
)
from uwf_git.store.objects.commit import is_descendant
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.objects.pack_file import (
    INDEX,
    INDEX_HEAD,
    OID_BYTES,
    PACK,
    find_pack_problem,
    map_file,
)
from uwf_git.store.objects.pack_writer import KEEP, Entry, PackRights, remove_dead_keep, write_pack
from uwf_git.store.packing import (
    MOST_PACKS,
    NAMES_AT,
    SmallPack,
    has_many_packs,
    is_git_gc_running,
    list_small_packs,
    may_live,
    remove_packs,
)
from uwf_git.store.refs import PACKED_HEADER, PackedRefs, PackedRow, parse_packed_refs, read_header
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.threads.local_files import (
    FILES,
    LOGS,
    ThreadBusy,
    files_index,
    forget_lock,
    forget_log,
    forget_workdir,
    has_files,
    is_any_alive,
    list_threads_with_runs,
    lock_thread,
    log_path,
    remove_runs,
    runs_folder,
    workdirs_folder,
)

# Pack refs as `git pack-refs --all` does; a kill leaves nothing that blocks git.
#
# A loose file is removed only while its ref is locked and packed-refs holds the same value
# durably. Symbolic refs, refs of one work tree and refs whose object is missing stay loose.
# Source: git-pack-refs(1); gitrepository-layout(5); git's refs/packed-backend.c for the format.

_OID = re.compile(rb"[0-9a-f]{40}")

# Refs of one work tree; git never packs them (gitrepository-layout, "refs").
_OF_ONE_TREE = ("refs/bisect/", "refs/rewritten/", "refs/worktree/")

_Peel = Callable[[bytes], bytes | None]
"""``_peel`` of one store, which remembers what it has looked up."""


def pack_refs(store: Store) -> int:
    """Move loose refs into packed-refs; return how many."""
    loose = dict(_list_loose(store.path))
    # Before packed-refs is locked: deleting a ref waits for that lock.
    peel = cache(partial(_peel, store.objects))
    loose = {name: oid for name, oid in loose.items() if _is_there(peel, oid)}
    if not loose:
        return 0
    path = os.path.join(store.path, PACKED_REFS)
    with hold_ref_lock(store.path, PACKED_REFS, b"", durable=False):
        # A process that deletes a ref holds this lock until the file is gone, so no ref read now
        # was deleted. A ref that has moved since stays loose.
        loose = {name: oid for name, oid in loose.items() if _read(store.path, name) == oid}
        content = _merged(path, loose, peel)
        durable = store.config.get_flag("uwf.fsync", default=True)
        replace_file(path, content, temporary_in=markers(store.path), durable=durable)
    return sum(_remove_loose(store, name, oid) for name, oid in loose.items())


def _list_loose(git_dir: str) -> Iterator[tuple[str, bytes]]:
    """Yield the refs that could be packed; one that cannot be read stays loose."""
    for folder, _folders, files in os.walk(os.path.join(git_dir, "refs")):
        prefix = os.path.relpath(folder, git_dir) + "/"
        if prefix.startswith(_OF_ONE_TREE):
            continue
        for file in files:
            name = prefix + file
            oid = _read(git_dir, name) if check_ref_format(Ref(os.fsencode(name))) else None
            if oid is not None:
                yield name, oid


def _read(git_dir: str, name: str) -> bytes | None:
    try:
        descriptor = os.open(
            os.path.join(git_dir, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        )
    except OSError:
        # Gone, not to be read, or a symbolic ref of a very old git, which was a symlink.
        return None
    try:
        oid = os.read(descriptor, 1000).rstrip()
    finally:
        os.close(descriptor)
    return oid if _OID.fullmatch(oid) else None


def _peel(objects: ObjectStore, oid: bytes) -> bytes | None:
    """Return what the tag *oid* peels to; None if *oid* is no tag."""
    at = oid
    for _tag in range(100):
        found = objects[ObjectID(at)]
        if not isinstance(found, Tag):
            return at if at != oid else None
        at = found.object[1]
    raise KeyError(oid)


def _is_there(peel: _Peel, oid: bytes) -> bool:
    try:
        peel(oid)
    except (KeyError, StoreDamaged):
        return False
    return True


def _merged(path: str, loose: Mapping[str, bytes], peel: _Peel) -> bytes:
    """Return the content of packed-refs with the *loose* refs added, sorted, tags peeled."""
    content = read_if_there(path)
    is_peeled = b" fully-peeled" in read_header(content)
    refs: dict[bytes, PackedRow] = {}
    for row in parse_packed_refs(path, content):
        is_to_peel = not row.peeled and not is_peeled and _is_there(peel, row.oid)
        refs[row.name] = row._replace(peeled=peel(row.oid) or b"") if is_to_peel else row
    added = ((os.fsencode(name), oid) for name, oid in loose.items())
    refs |= {name: PackedRow(oid, name, peel(oid) or b"") for name, oid in added}
    return PACKED_HEADER + b"".join(row.as_line() for _name, row in sorted(refs.items()))


def _remove_loose(store: Store, name: str, oid: bytes) -> bool:
    # Another process moves it, or a killed git left its lock: it may stay loose.
    with suppress(RefLocked), hold_ref_lock(store.path, name, b"", durable=False):
        packed = PackedRefs(os.path.join(store.path, PACKED_REFS)).find(name)
        # The ref may have been deleted and created again since.
        if packed == oid == _read(store.path, name):
            remove_file(os.path.join(store.path, name))
            return True
    return False


# Read a pack of whole objects as it stands, without inflating any.
#
# Both checksums are checked, so what is damaged is never copied. Source: gitformat-pack(5).

_HEAD_BYTES = 12
_COUNT = struct.Struct(">I")
_WHOLE = range(1, 5)


def read_whole_entries(path: str) -> list[Entry] | None:
    """Return what the pack at *path*, without its ending, has, in its order.

    None if it is gone or damaged, or has deltas.
    """
    with suppress(OSError, ValueError, struct.error):
        if find_pack_problem(path + PACK) is not None:
            return None
        index, content = (memoryview(map_file(path + each)) for each in (INDEX, PACK))
        if not (_is_sound(index) and _is_sound(content)):
            return None
        return _split(index, content)
    # ValueError: a file is empty.
    return None


def _split(index: memoryview, content: memoryview) -> list[Entry] | None:
    if index[: len(INDEX_HEAD)] != INDEX_HEAD:
        return None
    (count,) = _COUNT.unpack_from(index, NAMES_AT - _COUNT.size)
    crcs_at = NAMES_AT + count * OID_BYTES
    names = bytes(index[NAMES_AT:crcs_at])
    crcs = struct.unpack_from(f">{count}I", index, crcs_at)
    offsets = struct.unpack_from(f">{count}I", index, crcs_at + count * _COUNT.size)
    order = sorted(range(count), key=offsets.__getitem__)
    ends = [*(offsets[at] for at in order[1:]), len(content) - OID_BYTES]
    if count and offsets[order[0]] != _HEAD_BYTES:
        return None
    entries = [
        Entry(names[at * OID_BYTES : (at + 1) * OID_BYTES], crcs[at], content[offsets[at] : end])
        for at, end in zip(order, ends, strict=True)
    ]
    is_whole = all(entry.content and entry.content[0] >> 4 & 7 in _WHOLE for entry in entries)
    return entries if is_whole else None


def _is_sound(content: memoryview) -> bool:
    """Check whether a file ends with the SHA-1 of what is before."""
    digest = hashlib.sha1(content[:-OID_BYTES], usedforsecurity=False).digest()
    return digest == content[-OID_BYTES:]


# Unite small packs, so that a store of many steps has few files and reading stays fast.
#
# Entries are copied as they are. The new pack is durable before a source goes; a process that is
# killed leaves objects twice, or packs without an index, which nobody reads. Nobody waits for it.


# This long a process in the background has until it takes a lock.
_START_S = 10.0

# What takes 20 ms on a slow machine.
_FEW_BYTES = 512 * 1024
_FEW_OBJECTS = 2000


def find_union(store: Store) -> list[SmallPack]:
    """List the packs of *store* to unite now; most often none, for the price of one listing."""
    return choose_union(list_small_packs(_folder(store))) if has_many_packs(store.path) else []


def choose_union(packs: Sequence[SmallPack]) -> list[SmallPack]:
    """Choose from *packs*, the smallest first, which to unite; an empty list unless there are many.

    The largest pack that is less than twice all smaller packs, and the smaller packs. So the packs
    that stay apart at least triple in size from one to the next, and an object is copied a few
    times in all.
    """
    if len(packs) <= MOST_PACKS:
        return []
    count = smaller = 0
    for number, pack in enumerate(packs):
        if pack.size_bytes < 2 * smaller:
            count = number + 1
        smaller += pack.size_bytes
    return list(packs[:count])


def is_quick(packs: Sequence[SmallPack]) -> bool:
    """Check whether uniting *packs* takes less than some 20 ms."""
    size = sum(pack.size_bytes for pack in packs)
    return size <= _FEW_BYTES and sum(pack.objects for pack in packs) <= _FEW_OBJECTS


def unite_packs(store: Store) -> int:
    """Unite small packs of *store*; return how many packs became one.

    None while another process unites or packs: a git whose packs vanish gives up. Raises
    LockingUnsupported on a file system without flock.
    """
    with _hold(store) as descriptor:
        if descriptor is None or is_git_gc_running(store):
            return 0
        # The next union may again be one for the background.
        os.ftruncate(descriptor, 0)
        # Looked for anew: whoever had the lock before may have done it.
        packs = find_union(store)
        return _unite(store, packs) if packs else 0


def claim_start(store: Store) -> bool:
    """Check whether to start a process that tidies *store*; not if another is just starting."""
    with _hold(store) as descriptor:
        if descriptor is None:
            return False
        last = os.fstat(descriptor)
        if last.st_size and 0 <= time.time() - last.st_mtime < _START_S:
            return False
        os.pwrite(descriptor, b"started\n", 0)
        return True


@contextmanager
def pause_uniting(store: Store) -> Iterator[None]:
    """Let no process unite packs, nor be started for that; wait for the process that unites now."""
    with _hold(store, wait=True) as descriptor:
        if descriptor is not None:
            os.ftruncate(descriptor, 0)
        yield


def _unite(store: Store, packs: Sequence[SmallPack]) -> int:
    entries: dict[bytes, Entry] = {}
    used = []
    for pack in sorted(packs, key=lambda pack: pack.mtime_ns):
        found = read_whole_entries(pack.path)
        # What is gone was packed by git. What is damaged stays, for `uwf verify` to tell of.
        if found is not None:
            used.append(pack)
            for entry in found:
                entries.setdefault(entry.oid, entry)
    if len(used) <= 1:
        return 0
    durable = store.config.get_flag("uwf.fsync", default=True)
    rights = PackRights(durable, share=is_shared(store.config))
    new = write_pack(_folder(store), list(entries.values()), rights, keep=False)
    # Objects that no ref needs stay as old as they were: git prunes by age.
    os.utime(new.path + PACK, ns=(used[-1].mtime_ns, used[-1].mtime_ns))
    remove_packs(used)
    debug("TQ4H8WNC", "packs united", packs=len(used), objects=len(entries))
    return len(used)


@contextmanager
def _hold(store: Store, *, wait: bool = False) -> Iterator[int | None]:
    with hold_lock(store.local_path("locks", "unite"), wait=wait) as descriptor:
        if descriptor is not None and is_shared(store.config):
            # Another user's is as its owner made it.
            with suppress(PermissionError):
                os.fchmod(descriptor, 0o660)
        yield descriptor


def _folder(store: Store) -> str:
    return os.path.join(store.path, "objects", "pack")


# Remove what killed processes leave in the folder of packs.
#
# That is: unfinished packs, packs without an index, and `.keep` files of dead writers. A file is
# removed only when it is old, or when a lock or a pid proves that its writer is dead. Source:
# git's builtin/repack.c (`.tmp-<pid>-pack-…`) and builtin/prune.c (`tmp_…`).

# git has these for the instant between writing and naming packs; it never removes stale ones.
_UNNAMED = re.compile(r"\.tmp-([0-9]{1,10})-pack-.*")
_UNNAMED_OLD_S = 3600
# These are written for as long as packing takes; git removes stale ones after two weeks.
_UNFINISHED = "tmp_"
_OLD_S = 24 * 3600
# In objects/, unlike objects/pack/, other files begin with tmp_ too.
_UNFINISHED_ABOVE = "tmp_pack_"


def remove_stale_packs(store: Store) -> int:
    """Remove what killed writers of packs left; return how many files that were."""
    objects = os.path.join(store.path, "objects")
    folder = os.path.join(objects, "pack")
    packs = list_entries(folder)
    kept = [entry.path for entry in packs if entry.name.endswith(KEEP)]
    removed = sum(map(remove_dead_keep, kept))
    stale = [entry.path for entry in list_entries(objects) if _is_stale(entry, _UNFINISHED_ABOVE)]
    stale += [entry.path for entry in packs if _is_stale(entry, _UNFINISHED)]
    stale += _without_index(folder)
    for path in stale:
        remove_file(path)
    return removed + len(stale)


def _without_index(folder: str) -> Iterator[str]:
    """Yield the packs that uwf wrote or united and that nobody can read, if they are old."""
    names = set(list_names(folder))
    for name in sorted(names):
        stem, ending = os.path.splitext(name)
        path = os.path.join(folder, name)
        if ending == PACK and not names & {stem + INDEX, stem + KEEP} and _is_left(path):
            yield path


def _is_left(path: str) -> bool:
    """Check whether a pack is old and not git's, which names a pack after its checksum."""
    try:
        with open(path, "rb", buffering=0) as file:
            left = os.fstat(file.fileno())
            file.seek(-min(OID_BYTES, left.st_size), os.SEEK_END)
            is_ours = not path.endswith(f"-{file.read().hex()}{PACK}")
    except OSError:
        # It is gone, or another user's.
        return False
    is_old = time.time() - left.st_mtime > _OLD_S
    # The index may have come since the folder was listed.
    return is_old and is_ours and not os.path.exists(path.removesuffix(PACK) + INDEX)


def _is_stale(entry: os.DirEntry[str], prefix: str) -> bool:
    match = _UNNAMED.fullmatch(entry.name)
    if match is None and not entry.name.startswith(prefix):
        return False
    try:
        left = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        # It was finished in this moment.
        return False
    age_s = time.time() - left.st_mtime
    if match is None:
        return age_s > _OLD_S and entry.is_file(follow_symlinks=False)
    # The name has no host; the pid is looked up on this one.
    return age_s > _UNNAMED_OLD_S and not may_live(int(match[1]), os.uname().nodename, left)


# Remove what killed processes leave below a git directory.
#
# That is: temporary files, markers of ref locks, and locks, runs, logs and work directories of
# ended threads. Nothing that a living process may need is removed. What a lock guards is removed
# under that lock; what no lock guards, when it is a day old. Locks are not waited for: what is
# held stays. Unneeded objects are left to git's prune.


def remove_stale_files(store: Store) -> int:
    """Remove what killed processes left; return how many things that were."""
    removed = break_dead_locks(store.path)
    old = list(_old_temporaries(store))
    for path in old:
        remove_file(path)
    threads = sorted(_leftover_threads(store))
    return removed + len(old) + sum(_remove_thread_files(store, each) for each in threads)


def _old_temporaries(store: Store) -> Iterator[str]:
    objects = os.path.join(store.path, "objects")
    for folder, prefix in (
        (store.path, TEMPORARY),
        (markers(store.path), TEMPORARY),
        (workdirs_folder(store), TEMPORARY),
        (store.local_path("locks"), TEMPORARY),
        # git's prune removes these too, but there may be no git.
        (objects, "tmp_obj_"),
        # Left by a killed `git gc`; the next one would stop at it.
        (os.path.join(objects, "info"), "commit-graph.lock"),
    ):
        for entry in list_entries(folder):
            if entry.name.startswith(prefix) and _is_old(entry):
                yield entry.path


def _leftover_threads(store: Store) -> set[ThreadId]:
    """Return the threads that have local files but are not active, or have both refs."""
    found = set(list_threads_with_runs(store))
    # A thread has several locks: <id>, <id>.drive.
    found.update(_threads_in(store.local_path("locks"), also_young=True))
    # The log of an ended thread stays readable for a day.
    found.update(_threads_in(store.local_path(LOGS)))
    found.update(_threads_in(store.local_path(FILES)))
    # The work directory is recorded before the thread exists, so a young one may be in use.
    workdirs = _threads_in(workdirs_folder(store))
    found.update(thread for thread in workdirs if not has_files(store, thread))
    active = set(store.refs.names(ACTIVE))
    archived = set(store.refs.names(ARCHIVE))
    both = {ThreadId(name) for name in active & archived if is_thread_id(name)}
    return {thread for thread in found if thread not in active} | both


def _threads_in(folder: str, *, also_young: bool = False) -> Iterator[ThreadId]:
    """Yield the threads that files in *folder* are named after, of old files or of all."""
    for entry in list_entries(folder):
        thread = entry.name.partition(".")[0]
        if is_thread_id(thread) and (also_young or _is_old(entry)):
            yield ThreadId(thread)


def _remove_thread_files(store: Store, thread: ThreadId) -> int:
    with suppress(ThreadBusy), lock_thread(store, thread, since_ms=int(time.time() * 1000)):
        if _is_over(store, thread) and _remove_runs(store, thread):
            remove_file(files_index(store, thread))
            forget_workdir(store, thread)
            if _is_old(log_path(store, thread)):
                forget_log(store, thread)
            forget_lock(store, thread)
            return 1
    return 0


def _is_over(store: Store, thread: ThreadId) -> bool:
    """Check that the thread has ended; remove its active ref, if it still has one."""
    active = store.refs.find(ACTIVE + thread)
    if active is None:
        return True
    archived = store.refs.find(ARCHIVE + thread)
    if archived is None:
        return False
    # Otherwise the thread was ended elsewhere and continued here: that is work to keep.
    is_left_by_archiving = is_descendant(store.objects, archived, active)
    return is_left_by_archiving and store.refs.delete(ACTIVE + thread, seen=active)


def _remove_runs(store: Store, thread: ThreadId) -> bool:
    """Remove the runs of the thread; if one is young or alive, keep all and return False."""
    # Output that came too late stays readable for a day.
    young = (entry for entry in list_entries(runs_folder(store, thread)) if not _is_old(entry))
    if any(young) or is_any_alive(store, thread):
        return False
    remove_runs(store, thread)
    return True


def _is_old(path: str | os.DirEntry[str]) -> bool:
    """Check whether what is at *path*, if anything, was last written a day ago."""
    with suppress(FileNotFoundError):
        return time.time() - os.lstat(path).st_mtime > _OLD_S
    return False
