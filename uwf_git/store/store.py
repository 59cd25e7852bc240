"""Open a git directory as a store, or create one.

No work tree, index, HEAD or branch of an existing repository is touched.
Format: FORMAT.md, "Where things are".
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import NamedTuple

from uwf_git.debug_log import debug
from uwf_git.errors import BadUsage, Refused, StoreDamaged
from uwf_git.model.names import Oid
from uwf_git.model.text import quote_path
from uwf_git.store.durable import (
    FileMemory,
    find_user_file,
    join_below,
    list_names,
    make_folder,
    read_if_there,
    remove_file,
    replace_file,
    sync_directories,
)
from uwf_git.store.git.config import (
    BadConfig,
    GitConfig,
    add_user_config,
    is_shared,
    read_config_file,
    read_user_config,
)
from uwf_git.store.locks import PACKED_REFS, hold_lock
from uwf_git.store.objects.objects import DurableObjects, ObjectStore
from uwf_git.store.refs import Refs
from uwf_git.surroundings import folders_around


class OwnTransitions:
    """The transitions that one opened store made: recorded as commits, then reached by a head."""

    __slots__ = ("_moved", "_recorded")

    def __init__(self) -> None:
        self._recorded: set[Oid] = set()
        self._moved: list[Oid] = []

    def note_recorded(self, commit: Oid) -> None:
        """Record that *commit* was written here; no head is at it yet."""
        self._recorded.add(commit)

    def note_moved(self, commit: Oid) -> None:
        if commit in self._recorded:
            self._recorded.discard(commit)
            self._moved.append(commit)

    def take(self) -> list[Oid]:
        moved, self._moved = self._moved, []
        return moved


_FOLDERS = ("objects/info", "objects/pack", "refs/heads", "refs/tags")
_COMMON_DIR = "commondir"
_HEAD = re.compile(rb"ref:\s*refs/|[0-9a-fA-F]{40}")
_FLAGS = ("core.bare", "core.filemode", "core.logallrefupdates")
_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"


class NotAStore(Refused):
    code = "not-a-store"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"{path} {problem}",
            hint=f"make a store there with `uwf init {quote_path(path)}`, "
            "or name another with --repo",
            path=path,
        )
        if os.path.isdir(os.path.join(path, "objects")):
            self.message += ": its HEAD is missing"
            head = quote_path(os.path.join(path, "HEAD"))
            self.hint = f"make it name a branch: echo 'ref: refs/heads/main' > {head}"


def _unsupported_repository(path: str, feature: str) -> Refused:
    return Refused(
        f"{path} uses {feature}, which uwf cannot read yet",
        code="unsupported-repository",
        hint="keep the threads in a repository of their own: `uwf init PATH`, then --repo PATH",
        path=path,
    )


class Store(NamedTuple):
    path: str
    """The git directory (in a linked worktree: the common one)."""

    objects: ObjectStore
    refs: Refs
    config: GitConfig
    own_transitions: OwnTransitions
    """The transitions made through this store."""

    user_config: GitConfig = GitConfig({})
    """The settings of the user and the system alone; `config` includes them."""

    trust_file: str | None = None
    """The user's list of commands that may run here; None: the user has no home directory."""

    environ: Mapping[str, str] = MappingProxyType({})
    """The environment for programs that reading starts; an empty environment starts no program."""

    @property
    def has_remotes(self) -> bool:
        names = self.config.values
        return any(name.startswith("remote.") and name.endswith(".url") for name in names)

    def local_path(self, *parts: str) -> str:
        """Return a path below `<git dir>/uwf/`, where everything can be deleted; `join_below`."""
        return join_below(self.path, "uwf", *parts)

    def user_path(self, *parts: str) -> str | None:
        """Return a path beside `trust_file`, among the user's own files about this store."""
        if self.trust_file is None:
            return None
        return os.path.join(os.path.dirname(self.trust_file), *parts)


def open_store(path: str, *, environ: Mapping[str, str] | None = None) -> Store:
    """Open the git directory at *path*, or of the work tree there, or raise NotAStore.

    The settings are those of the repository; with *environ*, all settings that git has there.
    """
    git_dir = find_git_dir(path)
    if git_dir is None:
        exists = os.path.lexists(path)
        raise NotAStore(path, "is not a git repository" if exists else "does not exist")
    _check_head(git_dir)
    config = read_config_file(os.path.join(git_dir, "config"))
    _check_supported(git_dir, config)
    join_below(git_dir, "uwf")
    user_config = GitConfig({})
    if environ is not None:
        user_config = read_user_config(environ)
        config = add_user_config(git_dir, config, environ, user=user_config)
    durable = config.get_flag("uwf.fsync", default=True)
    objects = DurableObjects(os.path.join(git_dir, "objects"))
    objects.durable, objects.share = durable, is_shared(config)
    debug("RZN1JNHZ", "store opened", path=git_dir, durable=durable)
    return Store(
        git_dir,
        objects,
        Refs(git_dir, durable=durable, reached=objects.release),
        config,
        OwnTransitions(),
        user_config,
        None if environ is None else find_user_file(git_dir, environ, "trust"),
        environ or {},
    )


def create_store(path: str, *, environ: Mapping[str, str] | None = None) -> Store:
    """Create a bare repository at *path*, or complete one that is being created, and open it."""
    head = os.path.join(path, "HEAD")
    # Durable: everything that is synced later is in this folder.
    make_folder(path, durable=True)
    with hold_lock(os.path.join(path, "uwf", "locks", "init"), wait=True):
        if not os.path.isfile(head):
            for folder in _FOLDERS:
                os.makedirs(os.path.join(path, folder), exist_ok=True)
            # The name of each of its folders; those of refs are forced when a ref is written.
            sync_directories([os.path.join(path, "objects")])
            config = os.path.join(path, "config")
            if not os.path.lexists(config):
                replace_file(config, _CONFIG)
            # What was known of another store that was here.
            known = None if environ is None else find_user_file(path, environ, _KNOWN)
            if known is not None:
                remove_file(known)
            # HEAD last: it makes the directory a repository for git and uwf.
            replace_file(head, b"ref: refs/heads/main\n")
            debug("H0M71E87", "store made", path=path)
    return open_store(path, environ=environ)


def is_unfinished(path: str) -> bool:
    """Check whether the folder *path* holds nothing but what a killed `create_store` may leave."""
    left = {"objects", "refs", "uwf"}
    config = os.path.join(path, "config")
    if os.path.isfile(config) and read_if_there(config).startswith(_CONFIG):
        left.add("config")
    return all(name in left or name.startswith(".tmp_") for name in list_names(path))


def check_exists(store: Store) -> None:
    """Check that *store* is still where it was, or raise NotAStore."""
    if not is_git_dir(store.path):
        raise NotAStore(store.path, "does not exist")


def find_git_dir(path: str) -> str | None:
    """Return the git directory at *path*, or of the work tree at *path*; None without any."""
    return find_tree_git_dir(path) or _resolve_git_dir(path)


def find_tree_git_dir(path: str) -> str | None:
    """Return the git directory of the work tree at *path*, by its `.git`; None without a `.git`."""
    return _resolve_git_dir(os.path.join(path, ".git"))


def is_git_dir(path: str) -> bool:
    """Check whether the folder at *path* looks like a git directory, whatever its name."""
    has_objects = os.path.isdir(os.path.join(path, "objects"))
    return has_objects and os.path.isfile(os.path.join(path, "HEAD"))


def _resolve_git_dir(candidate: str) -> str | None:
    if not os.path.lexists(candidate):
        return None
    place = _follow_git_file(candidate) if os.path.isfile(candidate) else candidate
    if is_git_dir(place):
        return os.path.abspath(place)
    common = _common_dir(place)
    return common if common is not None and is_git_dir(common) else None


def _follow_git_file(path: str) -> str:
    """Follow a `.git` file (gitrepository-layout: ``gitdir: <path>``)."""
    with open(path, "rb") as file:
        content = file.read(10_000)
    if not content.startswith(b"gitdir: "):
        return path
    target = os.fsdecode(content[len(b"gitdir: ") :].rstrip(b"\r\n"))
    return os.path.join(os.path.dirname(path), target)


def _common_dir(git_dir: str) -> str | None:
    """Return the common directory of a linked worktree's git directory.

    Only where git makes worktrees, at `<common>/worktrees/<name>`: a file must not lead from one
    repository into another.
    """
    try:
        with open(os.path.join(git_dir, _COMMON_DIR), "rb") as file:
            target = os.fsdecode(file.read(10_000).rstrip(b"\r\n"))
        common = os.path.realpath(os.path.join(git_dir, target))
        parent, folder = os.path.split(os.path.dirname(os.path.realpath(git_dir)))
    except (OSError, ValueError):
        # ValueError: a path with a NUL, from a file that is not a `.git` file.
        return None
    if folder != "worktrees" or parent != common:
        return None
    return os.path.abspath(os.path.join(git_dir, target))


_HEADS: FileMemory[bytes] = FileMemory(64)


def _check_head(git_dir: str) -> None:
    path = os.path.join(git_dir, "HEAD")
    content = b"ref: refs/" if os.path.islink(path) else _HEADS.read(path, read_if_there)
    if _HEAD.match(content) is None:
        raise StoreDamaged(
            f"{path} names no branch and no commit, so git refuses the repository",
            code="broken-head",
            hint=f"make it name a branch: echo 'ref: refs/heads/main' > {quote_path(path)}",
            path=path,
        )


def _check_supported(git_dir: str, config: GitConfig) -> None:
    if os.path.lexists(os.path.join(git_dir, _COMMON_DIR)):
        # git would use the objects and refs of the other one, in `git gc` as well.
        raise _unsupported_repository(git_dir, f"another repository, by its file {_COMMON_DIR}")
    if os.path.islink(os.path.join(git_dir, PACKED_REFS)):
        # git writes the file that it leads to, and other repositories may have the same.
        raise _unsupported_repository(git_dir, f"a link as {PACKED_REFS}")
    path = os.path.join(git_dir, "config")
    if any("." not in name for name in config.values):
        raise BadConfig(path, "it has a setting before its first section")
    for name in _FLAGS:
        # Of what is no boolean, each call returns its default.
        if config.get_flag(name, default=True) == config.get_flag(name, default=False):
            continue
        value = config.get(name)
        if value is not None and value.lower() != "always":
            raise BadConfig(path, f"{name} is {value!r}, and no boolean")
    version = config.get("core.repositoryformatversion")
    if version not in {None, "0", "1"}:
        raise BadConfig(path, f"core.repositoryformatversion is {version!r}, and neither 0 nor 1")
    for setting, name, known in (
        ("extensions.objectformat", "object format", "sha1"),
        ("extensions.refstorage", "ref storage", "files"),
    ):
        value = config.get(setting)
        if value not in {None, known}:
            raise _unsupported_repository(git_dir, f"{name} {value}")


# Notice that settings of a store changed after an agent was started, but not by uwf.
#
# An agent that may write files may write the store's config. What that could run needs trust
# (trust.py); this says that it happened. What was known is in the user's own file `known-config`
# (durable.py), a JSON object of the settings, each with the SHA-256 of its values.

# What runs, and where things are sent. People set the others too often to be asked each time.
_WATCHED = (
    r"uwf\.(agent|onevent|onreceive|trustedagent|store)"
    r"|uwf\..+\.(args|command|env|key-?env|permission|program|provider|shell|url)"
    r"|core\.(alternaterefscommand|askpass|attributesfile|editor|fsmonitor|gitproxy|hookspath|pager"
    r"|sshcommand|worktree)"
    r"|gpg\.(.+\.)?(program|defaultkeycommand)|gc\.recentobjectshook"
    r"|(alias|credential|diff|extensions|filter|http|include|includeif|merge|protocol|receive|remote"
    r"|transfer|uploadpack|url)\..+"
)


_KNOWN = "known-config"


def watch_config(store: Store) -> None:
    """Record the settings of *store* as known, unless some are already; call it before an agent."""
    path = store.user_path(_KNOWN)
    if path is not None and not os.path.exists(path):
        _write(store, _read_settings(store))


def list_changed_settings(store: Store) -> list[str]:
    """List the watched settings of *store* that are other than known; none if no agent ran."""
    known = _read_known(store)
    return [] if known is None else _differ(known, _read_settings(store))


def accept_config(store: Store) -> list[str]:
    """Record the settings of *store* as known; return those that were other."""
    if changed := list_changed_settings(store):
        _write(store, _read_settings(store))
    return changed


@contextmanager
def own_change(store: Store) -> Iterator[None]:
    """Record the settings that this process changes meanwhile as known."""
    before = _read_settings(store)
    yield
    known = _read_known(store)
    if known is None:
        return
    after = _read_settings(store)
    for name in _differ(before, after):
        known.pop(name, None)
        known |= {name: after[name]} if name in after else {}
    _write(store, known)


def _read_known(store: Store) -> dict[str, str] | None:
    path = store.user_path(_KNOWN)
    content = b"" if path is None else read_if_there(path)
    with suppress(ValueError):
        value = json.loads(content or b"null")
        if isinstance(value, dict):
            return value
    return None


def _read_settings(store: Store) -> dict[str, str]:
    config = read_config_file(os.path.join(store.path, "config"))
    return {
        name: hashlib.sha256(json.dumps(values).encode()).hexdigest()
        for name, values in config.values.items()
        if re.fullmatch(_WATCHED, name)
    }


def _differ(one: dict[str, str], other: dict[str, str]) -> list[str]:
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def _write(store: Store, settings: dict[str, str]) -> None:
    path = store.user_path(_KNOWN)
    # A warning is not worth a failed step.
    with suppress(OSError):
        if path is not None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            replace_file(path, json.dumps(settings, sort_keys=True).encode(), durable=False)


# Find the store: the named one, else the enclosing one, else the default one.
#
# Named: --repo or $UWF_REPO. Enclosing: the nearest work tree whose repository's config has
# ``uwf.store = true``. Default: the path in the user's own git config, ``uwf.repo``, else
# `~/.uwf/store.git`; the first use creates it.
#
# A bare repository encloses nothing: its files can be part of any checkout (git-config(1),
# safe.bareRepository). It must be named.

DEFAULT_NAME = "uwf.repo"


def find_store(repo: str | None, cwd: str, environ: Mapping[str, str], *, create: bool) -> Store:
    """Open the store: *repo* if given, else the enclosing store, else the default store.

    With *create* a missing default store is created; a missing *repo* never is (NotAStore).
    """
    if repo:
        return open_store(os.path.join(cwd, os.path.expanduser(repo)), environ=environ)
    for folder in folders_around(cwd):
        git_dir = find_tree_git_dir(folder)
        if git_dir is not None and _is_chosen(git_dir):
            check_owner(folder, git_dir, environ)
            return open_store(git_dir, environ=environ)
    path = default_path(environ)
    if find_git_dir(path) is not None:
        return open_store(path, environ=environ)
    if not create:
        raise NotAStore(path, "does not exist yet")
    return create_store(path, environ=environ)


def check_owner(folder: str, git_dir: str, environ: Mapping[str, str]) -> None:
    """Refuse the repository *git_dir* of the work tree at *folder* if another user made it.

    As git does: its config names programs. Source: git-config(1), safe.directory.
    """
    places = (git_dir, os.path.join(folder, ".git"))
    if all(os.lstat(place).st_uid == os.geteuid() for place in places):
        return
    safe: set[str] = set()
    for value in read_user_config(environ).get_all("safe.directory"):
        # An empty value takes back those before it.
        safe = safe | {value} if value else set()
    if not {"*", folder, git_dir, os.path.dirname(git_dir)} & safe:
        raise Refused(
            f"{git_dir}, which encloses this directory, belongs to another user",
            code="foreign-repository",
            hint=f"if you trust its agents: `uwf --repo {quote_path(git_dir)} …`, "
            "or git's safe.directory",
            path=git_dir,
        )


def default_path(environ: Mapping[str, str]) -> str:
    """Return the path of the default store; one in the user's config begins in their home."""
    home = environ.get("HOME")
    named = read_user_config(environ).get(DEFAULT_NAME)
    if named and os.path.isabs(named):
        return named
    if not home:
        raise BadUsage(
            "there is no $HOME to keep the default store in",
            code="no-home",
            hint="name a store: `uwf --repo PATH …` or $UWF_REPO",
        )
    return os.path.join(home, (named or ".uwf/store.git").removeprefix("~/"))


def find_bare_around(cwd: str) -> str | None:
    """Return the nearest bare repository that *cwd* lies in, without reading from it, or None."""
    for folder in folders_around(cwd):
        if os.path.basename(folder) == ".git" or os.path.lexists(os.path.join(folder, ".git")):
            return None
        if is_git_dir(folder):
            return folder
    return None


def _is_chosen(git_dir: str) -> bool:
    config = read_config_file(os.path.join(git_dir, "config"))
    return config.get_flag("uwf.store", default=False)
