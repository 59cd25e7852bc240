"""Remove what killed processes leave in the folder of packs.

That is: unfinished packs, packs without an index, and `.keep` files of dead writers. A file is
removed only when it is old, or when a lock or a pid proves that its writer is dead.
Source: git's builtin/repack.c (`.tmp-<pid>-pack-…`) and builtin/prune.c (`tmp_…`).
"""

import os
import re
import time
from collections.abc import Iterator

from uwf_git.store.disk.durable import remove_file
from uwf_git.store.gc.lock import may_live
from uwf_git.store.objects.keep_file import KEEP, remove_dead_keep
from uwf_git.store.objects.pack_file import INDEX, PACK
from uwf_git.store.store import Store

# git has these for the instant between writing and naming packs; it never removes stale ones.
_UNNAMED = re.compile(r"\.tmp-([0-9]{1,10})-pack-.*")
_UNNAMED_OLD_S = 3600
# These are written for as long as packing takes; git removes stale ones after two weeks.
_UNFINISHED = "tmp_"
_UNFINISHED_OLD_S = 24 * 3600
# In objects/, unlike objects/pack/, other files begin with tmp_ too.
_UNFINISHED_ABOVE = "tmp_pack_"
_SUM_BYTES = 20


def remove_stale_packs(store: Store) -> int:
    """Remove what killed writers of packs left; return how many files that were.

    Raises:
        OSError: the system refused a removal.
    """
    objects = os.path.join(store.path, "objects")
    folder = os.path.join(objects, "pack")
    removed = 0
    for place, prefix in ((objects, _UNFINISHED_ABOVE), (folder, _UNFINISHED)):
        for entry in os.scandir(place):
            if _is_stale(entry, prefix):
                remove_file(entry.path)
                removed += 1
    kept = [entry.path for entry in os.scandir(folder) if entry.name.endswith(KEEP)]
    removed += sum(map(remove_dead_keep, kept))
    for path in list(_without_index(folder)):
        remove_file(path)
        removed += 1
    return removed


def _without_index(folder: str) -> Iterator[str]:
    """Yield the packs that uwf wrote or united and that nobody can read, if they are old."""
    names = set(os.listdir(folder))
    for name in sorted(names):
        stem, ending = os.path.splitext(name)
        path = os.path.join(folder, name)
        if ending == PACK and not names & {stem + INDEX, stem + KEEP} and _is_left(path):
            yield path


def _is_left(path: str) -> bool:
    """Tell whether a pack is old, and no one of git, which names a pack after its checksum."""
    try:
        with open(path, "rb", buffering=0) as file:
            left = os.fstat(file.fileno())
            file.seek(-min(_SUM_BYTES, left.st_size), os.SEEK_END)
            is_ours = not path.endswith(f"-{file.read().hex()}{PACK}")
    except OSError:
        # It is gone, or another user's.
        return False
    is_old = time.time() - left.st_mtime > _UNFINISHED_OLD_S
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
        return age_s > _UNFINISHED_OLD_S and entry.is_file(follow_symlinks=False)
    # The name has no host; the pid is looked up on this one.
    host = os.uname().nodename
    return age_s > _UNNAMED_OLD_S and not may_live(int(match[1]), host, left)
