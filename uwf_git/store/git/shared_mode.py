"""Shared repositories (core.sharedRepository): files that a group may write.

Rights are only added, and only for the group.
Source: git-config(1), core.sharedRepository; git-init(1), --shared.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from uwf_git.store.git.config import GitConfig

NAME = "core.sharedRepository"

_GROUP_WORDS = {"group", "true", "yes", "on", "1", "all", "world", "everybody", "2"}
_FILE_BITS = stat.S_IRGRP | stat.S_IWGRP
_READ_BIT = stat.S_IRGRP
# setgid: new files get the group of the folder, not the primary group of their creator.
_FOLDER_BITS = stat.S_IRWXG | stat.S_ISGID
_ANY_EXECUTE = stat.S_IXUSR


def is_shared(config: GitConfig) -> bool:
    value = (config.get(NAME) or "").lower()
    if value in _GROUP_WORDS:
        return True
    # As in chmod: 0660 and the like.
    return len(value) > 1 and set(value) <= set("01234567") and bool(int(value, 8) & stat.S_IWGRP)


def share_folder(path: str) -> None:
    """Give the group the rights of the owner on everything in *path*."""
    for folder, _folders, files in os.walk(path):
        _add_bits(folder, _FOLDER_BITS)
        for name in files:
            file = os.path.join(folder, name)
            if not os.path.islink(file):
                _add_bits(file, _bits_like_the_owner(os.stat(file).st_mode))


@contextmanager
def shared_umask(config: GitConfig) -> Iterator[None]:
    """Set a umask that makes new files writable for the group, if the repository is shared."""
    if not is_shared(config):
        yield
        return
    before = os.umask(0o077)
    os.umask(before & ~stat.S_IRWXG)
    try:
        yield
    finally:
        os.umask(before)


def _bits_like_the_owner(mode: int) -> int:
    bits = _FILE_BITS if mode & stat.S_IWUSR else _READ_BIT
    return bits | stat.S_IXGRP if mode & _ANY_EXECUTE else bits


def _add_bits(path: str, bits: int) -> None:
    found = os.stat(path)
    if found.st_uid == os.geteuid() and found.st_mode & bits != bits:
        os.chmod(path, stat.S_IMODE(found.st_mode) | bits)
