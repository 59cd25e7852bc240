"""Remove unfinished packs that killed packers left.

A file is removed only when it is old and, if its name has the pid of its writer, that is dead.
Source: git's builtin/repack.c (`.tmp-<pid>-pack-…`) and builtin/prune.c (`tmp_…`).
"""

import os
import re
import time

from uwf_git.store.disk.durable import remove_file
from uwf_git.store.gc.lock import may_live
from uwf_git.store.store import Store

# git has these for the instant between writing and naming packs; it never removes stale ones.
_UNNAMED = re.compile(r"\.tmp-([0-9]{1,10})-pack-.*")
_UNNAMED_OLD_S = 3600
# These are written for as long as packing takes; git removes stale ones after two weeks.
_UNFINISHED = "tmp_"
_UNFINISHED_OLD_S = 24 * 3600
# In objects/, unlike objects/pack/, other files begin with tmp_ too.
_UNFINISHED_ABOVE = "tmp_pack_"


def remove_stale_packs(store: Store) -> int:
    """Remove packs that killed packers left unfinished; return how many files that were."""
    objects = os.path.join(store.path, "objects")
    removed = 0
    for folder, prefix in (
        (objects, _UNFINISHED_ABOVE),
        (os.path.join(objects, "pack"), _UNFINISHED),
    ):
        for entry in os.scandir(folder):
            if _is_stale(entry, prefix):
                remove_file(entry.path)
                removed += 1
    return removed


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
