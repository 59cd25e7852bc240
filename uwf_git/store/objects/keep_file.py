"""`.keep` files: git and our uniting leave the pack beside one alone until its writer is done.

`git repack -ad` lists the packs, reads the refs, and then removes what it listed: a pack whose
ref moves in between would be lost. So the `.keep` is there from before the pack has its name until
the ref has moved. Its writer holds a flock on it: what a dead writer left is known, and swept.
Source: git-index-pack(1), --keep; collect_pack_filenames in git's builtin/repack.c.
"""

import functools
import json
import os
import stat
import time
from typing import Any

from uwf_git.errors import StoreFailed
from uwf_git.processes import read_process_start
from uwf_git.store.disk.durable import remove_file
from uwf_git.store.disk.file_lock import free_lock, hold_lock, take_lock

KEEP = ".keep"
_WRITER = "uwf"
_MOST_BYTES = 1000
_OLD_S = 24 * 3600
_GROUP = stat.S_IRGRP | stat.S_IWGRP


class KeepFile:
    """The `.keep` of one new pack, held by this process."""

    def __init__(self, pack: str, *, share: bool) -> None:
        """Make the `.keep` beside *pack*, a path without its ending that nobody else uses.

        Raises:
            OSError: the system refused; no file is left.
            LockingUnsupported: the file system has no flock.
        """
        self._path = pack + KEEP
        self._pid = os.getpid()
        self._descriptor: int | None = None
        try:
            # Nobody holds it; the sweep of another process may look at it for a moment.
            self._descriptor = descriptor = take_lock(self._path, wait=True)
            if descriptor is not None:
                if share:
                    os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) | _GROUP)
                os.write(descriptor, _describe_process(self._pid))
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Remove the file and its lock; nothing happens a second time, or in a forked child."""
        descriptor, self._descriptor = self._descriptor, None
        # The file is the parent's, and the child's copy of the lock is closed (file_lock.py).
        if descriptor is None or self._pid != os.getpid():
            return
        remove_file(self._path)
        free_lock(descriptor)

    def __del__(self) -> None:
        # The writer has given up: its thread has ended, or its store is closed.
        self.release()


def remove_dead_keep(path: str) -> bool:
    """Remove the `.keep` at *path* if a writer of packs left it that is dead; tell whether it was.

    Not what git or people wrote; not what a living writer holds; and of another machine, whose
    locks may not be seen here, only what is a day old.
    """
    try:
        with hold_lock(path, wait=False, make=False) as descriptor:
            if descriptor is None or not _is_left(descriptor):
                return False
            remove_file(path)
            return True
    except (OSError, StoreFailed):
        # Another user's, no file, or on a disk that cannot be written.
        return False


def is_kept(pack: str) -> bool:
    """Check whether *pack*, a path without its ending, has a `.keep` of anybody.

    Asked after the folder was listed, the answer holds: a `.keep` is older than the pack's name.
    """
    return os.path.lexists(pack + KEEP)


def _is_left(descriptor: int) -> bool:
    content = _parse(os.pread(descriptor, _MOST_BYTES, 0))
    if content.get("writer") != _WRITER:
        return False
    is_here = content.get("host") == os.uname().nodename
    return is_here or time.time() - os.fstat(descriptor).st_mtime > _OLD_S


def _parse(text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


@functools.lru_cache(maxsize=1)
def _describe_process(pid: int) -> bytes:
    """Return what this process writes into its `.keep` files, for people and for the sweep."""
    start, host = read_process_start(pid), os.uname().nodename
    return json.dumps({"writer": _WRITER, "pid": pid, "start": start, "host": host}).encode()
