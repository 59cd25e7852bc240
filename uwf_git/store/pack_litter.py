"""Pack litter: what packers that were killed have left among the packs.

Owns: knowing a half-written pack from one that is being written.
Knows nothing of: other litter (litter.py). Always true: a file goes only when it is old, and if
its name tells the process that wrote it, when that is dead.
Source: git's builtin/repack.c (`.tmp-<pid>-pack-…`) and builtin/prune.c (`tmp_…`).
"""

import os
import re
import time

from uwf_git.store.durable import remove
from uwf_git.store.gc_lock import may_live
from uwf_git.store.store import Store

# git has these for the instant between writing packs and naming them; it never sweeps them.
_UNNAMED = re.compile(r"\.tmp-([0-9]{1,10})-pack-.*")
_UNNAMED_OLD_S = 3600
# These are written to until they are done, if it takes hours; git sweeps them after two weeks.
_UNFINISHED = "tmp_"
_UNFINISHED_OLD_S = 24 * 3600
# Above the packs there are others' files with that beginning.
_UNFINISHED_ABOVE = "tmp_pack_"


def sweep_pack_litter(store: Store) -> int:
    """Remove the packs that nobody will finish; tell how many files that were."""
    if not store.is_kept:
        return 0
    objects = os.path.join(store.path, "objects")
    swept = 0
    for folder, prefix in (
        (objects, _UNFINISHED_ABOVE),
        (os.path.join(objects, "pack"), _UNFINISHED),
    ):
        for entry in os.scandir(folder):
            if _is_litter(entry, prefix):
                remove(entry.path)
                swept += 1
    return swept


def _is_litter(entry: os.DirEntry[str], prefix: str) -> bool:
    match = _UNNAMED.fullmatch(entry.name)
    if match is None and not entry.name.startswith(prefix):
        return False
    try:
        left = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        # Finished in this moment.
        return False
    age_s = time.time() - left.st_mtime
    if match is None:
        return age_s > _UNFINISHED_OLD_S and entry.is_file(follow_symlinks=False)
    # The name has no machine: on another one the number may be alive.
    host = os.uname().nodename
    return age_s > _UNNAMED_OLD_S and not may_live(int(match[1]), host, left)
