"""The store: one git directory, opened.

Owns: opening a git directory of a kind we can keep threads in, and making a new one.
Knows nothing of: how it was chosen (discover.py).
Always true: no work tree, index, HEAD or branch is ever touched; everything below
`<git dir>/uwf/` can be deleted while nothing runs, and nothing is lost.
Format: FORMAT.md, "Where things are".
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.debug_log import debug
from uwf_git.errors import Refused
from uwf_git.store.durable import make_folder, replace_file
from uwf_git.store.file_lock import hold_lock
from uwf_git.store.git_config import GitConfig, read_config_file, read_user_config
from uwf_git.store.memory import MemoryObjects, MemoryRefs
from uwf_git.store.moves import Moves
from uwf_git.store.objects import DurableObjects, ObjectStore
from uwf_git.store.refs import RefFiles, Refs

_FOLDERS = ("objects/info", "objects/pack", "refs/heads", "refs/tags")
_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"


class NotAStore(Refused):
    """The path holds no git directory that uwf can keep threads in."""

    code = "not-a-store"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"{path} {problem}",
            hint=f"make a store there with `uwf init {path}`, or name another with --repo",
            path=path,
        )


class UnsupportedRepository(Refused):
    """A git directory of a kind that uwf cannot read or write yet."""

    code = "unsupported-repository"

    def __init__(self, path: str, feature: str) -> None:
        super().__init__(
            f"{path} uses {feature}, which uwf cannot read yet",
            hint="keep the threads in a repository of their own: `uwf init PATH`, then --repo PATH",
            path=path,
        )


class Store(NamedTuple):
    """A git directory as the store sees it."""

    path: str
    """The git directory (in a linked worktree: the common one); "" for a store in memory."""

    objects: ObjectStore
    refs: Refs
    config: GitConfig
    moves: Moves | None = None
    """The transitions that were made through it; None if nobody will ask."""

    @property
    def is_kept(self) -> bool:
        """Tell whether the store is on a disk, so that there is somewhere to put a lock."""
        return bool(self.path)

    def local_path(self, *parts: str) -> str:
        """Give a path below `<git dir>/uwf/`, where all that can be deleted lives."""
        return os.path.join(self.path, "uwf", *parts)


def open_store(path: str, *, environ: Mapping[str, str] | None = None) -> Store:
    """Open the git directory at *path*, or the one of the work tree at *path*.

    Its settings are the repository's, over those of the user and the system when *environ*
    says where these are.

    Raises:
        NotAStore: there is none.
        UnsupportedRepository: it is of a kind that we cannot read.
    """
    git_dir = find_git_dir(path)
    if git_dir is None:
        exists = os.path.lexists(path)
        raise NotAStore(path, "is not a git repository" if exists else "does not exist")
    config = read_config_file(os.path.join(git_dir, "config"))
    _check_supported(git_dir, config)
    if environ is not None:
        config = config.over(read_user_config(environ))
    durable = config.get_flag("uwf.fsync", default=True)
    objects = DurableObjects(os.path.join(git_dir, "objects"))
    objects.durable = durable
    debug("RZN1JNHZ", "store opened", path=git_dir, durable=durable)
    return Store(git_dir, objects, RefFiles(git_dir, durable=durable), config, Moves())


def create_store(path: str, *, environ: Mapping[str, str] | None = None) -> Store:
    """Make a bare repository at *path* and open it; what git would make with `init --bare`.

    A process killed half-way leaves what the next one completes, and of two at once the second
    finds the first one's: the default store is made by whichever command comes first.

    Raises:
        OSError: the machine would not let it be made.
    """
    head = os.path.join(path, "HEAD")
    # All that will ever be forced to the disk is in this folder.
    make_folder(path, durable=True)
    with hold_lock(os.path.join(path, "uwf", "locks", "init"), wait=True):
        if not os.path.isfile(head):
            for folder in _FOLDERS:
                os.makedirs(os.path.join(path, folder), exist_ok=True)
            replace_file(os.path.join(path, "config"), _CONFIG)
            # Last: git and we take a directory with a HEAD for a repository.
            replace_file(head, b"ref: refs/heads/main\n")
            debug("H0M71E87", "store made", path=path)
    return open_store(path, environ=environ)


def memory_store() -> Store:
    """Make a store that is not kept."""
    return Store("", MemoryObjects(), MemoryRefs(), GitConfig({}), Moves())


def find_git_dir(path: str) -> str | None:
    """Give the git directory that *path* is, or that belongs to the work tree *path* is."""
    for candidate in (os.path.join(path, ".git"), path):
        if os.path.isfile(candidate):
            candidate = _follow_git_file(candidate)  # noqa: PLW2901 - the same place, followed
        if _is_git_dir(candidate):
            return os.path.abspath(candidate)
        common = _common_dir(candidate)
        if common is not None and _is_git_dir(common):
            return common
    return None


def _is_git_dir(path: str) -> bool:
    has_objects = os.path.isdir(os.path.join(path, "objects"))
    return has_objects and os.path.isfile(os.path.join(path, "HEAD"))


def _follow_git_file(path: str) -> str:
    """Follow a `.git` file (gitrepository-layout: ``gitdir: <path>``)."""
    with open(path, "rb") as file:
        content = file.read(10_000)
    if not content.startswith(b"gitdir: "):
        return path
    target = os.fsdecode(content[len(b"gitdir: ") :].rstrip(b"\r\n"))
    return os.path.join(os.path.dirname(path), target)


def _common_dir(git_dir: str) -> str | None:
    """Give the common directory of a linked worktree's git directory."""
    try:
        with open(os.path.join(git_dir, "commondir"), "rb") as file:
            target = os.fsdecode(file.read(10_000).rstrip(b"\r\n"))
    except (OSError, ValueError):
        # ValueError: a path with a NUL, out of a file that is no `.git` file.
        return None
    return os.path.abspath(os.path.join(git_dir, target))


def _check_supported(git_dir: str, config: GitConfig) -> None:
    object_format = config.get("extensions.objectformat")
    if object_format not in {None, "sha1"}:
        raise UnsupportedRepository(git_dir, f"object format {object_format}")
    ref_storage = config.get("extensions.refstorage")
    if ref_storage not in {None, "files"}:
        raise UnsupportedRepository(git_dir, f"ref storage {ref_storage}")
