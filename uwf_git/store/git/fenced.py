"""Start git in a folder that an agent could write, so that no program runs that the folder names.

What runs is in the config of a repository: filters, hooks, ssh, the transport of a missing object.
The agent chooses the names, and may change the file after anybody has looked. So git gets a git
directory of ours, where no agent writes: its config is the project's config at the beginning of the
thread, with harmless values of now, and objects, refs and what filters keep are links.

git itself starts another git in each repository inside that it looks into, with the config there.
The callers ask it not to, and look into those themselves.
"""

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from uwf_git.store.durable import find_user_file, read_if_there, replace_file
from uwf_git.store.git.config import BadConfig, GitConfig, read_config_file, spell_setting
from uwf_git.store.git.program import ProgramFailed, Ran, run_program
from uwf_git.surroundings import folders_around, without_local_variables

_HARMLESS = (
    *("repositoryformatversion", "filemode", "symlinks", "ignorecase", "precomposeunicode"),
    *("autocrlf", "eol", "trustctime", "checkstat", "bigfilethreshold", "sharedrepository"),
    *("excludesfile", "attributesfile"),
)
_SPARSE = {"core.sparsecheckout", "core.sparsecheckoutcone", "index.sparse"}
_FORMATS = ("objectformat", "compatobjectformat", "refstorage", "preciousobjects")
_COPIED = {f"core.{each}" for each in _HARMLESS} | {f"extensions.{each}" for each in _FORMATS}
_COPIED |= _SPARSE
# Where other settings are, and what is no program but would lead git elsewhere.
_NOT_KEPT = ("include.", "includeif.", "core.worktree", "extensions.worktreeconfig")
_OURS = """\
[core]
	bare = false
	hooksPath = /dev/null
	fsmonitor = false
	safecrlf = false
	untrackedCache = false
	quotePath = true
[log]
	showSignature = false
[submodule]
	recurse = false
[maintenance]
	auto = false
"""
# Folders of a git directory that decide what runs, or where; and those that are not shared.
_NOT_LINKED = {"hooks", "info", "modules", "remotes", "branches"}
_INFO = ("info/attributes", "info/exclude", "info/grafts")
_PATTERNS = "info/sparse-checkout"
_FORGOTTEN_S = 24 * 3600
_LONGEST_S = 60.0

LINK = "160000"
"""The mode of what a tree or an index has for a repository inside."""


class Kept(NamedTuple):
    """The settings that a project had when the thread began."""

    repository: str = ""
    """Its git directory, the common one."""

    text: str = ""


NOTHING_KEPT = Kept()


class Place(NamedTuple):
    git_dir: str
    worktree: str | None = None
    index_file: str | None = None
    """By default the index of the git directory."""

    kept: Kept = NOTHING_KEPT
    """These settings count if they belong to this repository."""


@contextmanager
def fenced(environ: Mapping[str, str], place: Place) -> Iterator[dict[str, str]]:
    """Make a git directory for *place*, and yield the environment of a git that uses it."""
    try:
        common = find_common_dir(place.git_dir)
        folder = _make_git_dir(environ, common, place)
    except OSError as error:
        problem = f"was not started for {place.git_dir}: {error.strerror}"
        raise ProgramFailed("git", problem) from error
    made = {
        "GIT_DIR": folder,
        "GIT_INDEX_FILE": place.index_file or os.path.join(place.git_dir, "index"),
        # An index of ours may be brought up to date.
        "GIT_OPTIONAL_LOCKS": "0" if place.index_file is None else "1",
        "LC_ALL": "C",
        **({} if place.worktree is None else {"GIT_WORK_TREE": place.worktree}),
    }
    yield without_local_variables(environ) | made
    with os.scandir(folder) as entries:
        for each in entries:
            if each.is_dir(follow_symlinks=False) and each.name != "info":
                # A filter keeps it beside the objects, as git-lfs does, and the folder is new. It
                # stays here as well: another process may be writing there.
                shutil.copytree(each.path, os.path.join(common, each.name), dirs_exist_ok=True)


def run_fenced(
    environ: Mapping[str, str],
    place: Place,
    *words: str,
    cwd: str | None = None,
    given: bytes = b"",
    timeout_s: float | None = None,
) -> Ran:
    """Run `git` *words* in *place*, at the top of its work tree or in *cwd*."""
    with fenced(environ, place) as made:
        into = cwd or place.worktree or made["GIT_DIR"]
        return run_program(["git", *words], made, given=given, cwd=into, timeout_s=timeout_s)


def find_place(environ: Mapping[str, str], folder: str, kept: Kept = NOTHING_KEPT) -> Place | str:
    """Return the repository and the work tree around *folder*, or why git finds no repository.

    The work tree is where its `.git` is, whatever its config says.
    """
    # This looks for no file of the work tree and for no object, and so runs nothing.
    asked = ["git", "-C", folder, "rev-parse", "--is-inside-work-tree", "--absolute-git-dir"]
    env = without_local_variables(environ) | {"LC_ALL": "C"}
    ran = run_program(asked, env, timeout_s=_LONGEST_S)
    inside, _, git_dir = os.fsdecode(ran.stdout).removesuffix("\n").partition("\n")
    top = _find_top(folder)
    if ran.status or inside != "true" or top is None:
        # The first line has the reason; what follows are words about settings.
        told = os.fsdecode(ran.stderr).split("\n")[0].removeprefix("fatal: ")
        return told or "it is not in a work tree"
    return Place(git_dir, top, kept=kept)


def find_inner(environ: Mapping[str, str], path: str) -> Place | None:
    """Return the repository whose work tree is *path*; None if git sees no repository there."""
    # Of a `.git` that is no repository git would go on to the one outside.
    found = find_place(environ, path)
    if isinstance(found, Place) and found.worktree == os.path.realpath(path):
        return found
    return None


def find_common_dir(git_dir: str) -> str:
    """Return the directory that all work trees of a repository have in common."""
    target = os.fsdecode(_read(os.path.join(git_dir, "commondir")).rstrip(b"\r\n"))
    return os.path.realpath(os.path.join(git_dir, target))


def list_links(
    environ: Mapping[str, str], place: Place, *, cwd: str | None = None
) -> dict[str, str]:
    ran = run_fenced(environ, place, "ls-files", "--stage", "-z", cwd=cwd)
    if ran.status:
        raise ProgramFailed("git", f"ls-files failed: {ran.last_line}")
    rows = (os.fsdecode(row).partition("\t") for row in ran.stdout.split(b"\0"))
    return {path: about.split()[1] for about, _, path in rows if about.startswith(LINK)}


def list_uncommitted(
    environ: Mapping[str, str], place: Place, *, untracked: str = "normal"
) -> list[str]:
    """List what is neither as HEAD has it nor ignored, also in submodules."""
    words = ("--porcelain", "-z", "--no-renames", f"--untracked-files={untracked}")
    ran = run_fenced(environ, place, "status", *words, "--ignore-submodules=dirty")
    if ran.status:
        raise ProgramFailed("git", f"status failed: {ran.last_line}")
    ignored = _read_ignored(place)
    changed = (os.fsdecode(row)[3:] for row in ran.stdout.split(b"\0") if row)
    names = [name for name in changed if ignored.get(name) != "all"]
    inside = list_changed_inside(environ, place, ignored=ignored)
    return [*names, *(name for name in inside if name not in names)]


def list_changed_inside(
    environ: Mapping[str, str],
    place: Place,
    *,
    cwd: str | None = None,
    ignored: Mapping[str, str] | None = None,
) -> list[str]:
    """List the submodules with uncommitted changes; *ignored*: ``submodule.<name>.ignore``."""
    found = []
    for name in list_links(environ, place, cwd=cwd):
        path = os.path.join(cwd or place.worktree or "", name)
        how = (ignored or {}).get(name)
        if how in {"all", "dirty"} or not os.path.lexists(os.path.join(path, ".git")):
            continue
        inner = find_inner(environ, path)
        untracked = "no" if how == "untracked" else "normal"
        if inner is not None and list_uncommitted(environ, inner, untracked=untracked):
            found.append(name)
    return found


def share_sparseness(common: str, git_dir: str) -> None:
    """Copy the sparse-checkout settings of the main work tree, if any, to the new *git_dir*."""
    found = _read_own(common, common)
    if found.get_flag("core.sparseCheckout", default=False):
        settings = {name: found.get_all(name) for name in found.values if name in _SPARSE}
        os.makedirs(os.path.join(git_dir, "info"), exist_ok=True)
        _write(git_dir, "config.worktree", _spell(settings).encode(errors="surrogateescape"))
        _write(git_dir, _PATTERNS, _read(os.path.join(common, _PATTERNS)))


def keep_settings(path: str, folder: str, *, known: Kept = NOTHING_KEPT) -> None:
    """Keep the settings of the repository around *folder*, or *known* ones, in the file *path*."""
    top = _find_top(folder)
    if top is None:
        return
    with suppress(OSError, ValueError, BadConfig):
        git_dir = os.path.join(top, ".git")
        if os.path.isfile(git_dir):
            target = _read(git_dir).removeprefix(b"gitdir: ").rstrip(b"\r\n")
            git_dir = os.path.join(top, os.fsdecode(target))
        common = find_common_dir(git_dir)
        found = _read_own(common, git_dir).values.items()
        kept = {name: values for name, values in found if not name.startswith(_NOT_KEPT)}
        is_known = known.repository == common
        document = json.dumps(known if is_known else Kept(common, _spell(kept)))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        replace_file(path, document.encode(), durable=False)


def read_settings(path: str | None) -> Kept:
    content = b"" if path is None else read_if_there(path)
    # Suppressed: a power loss may have left anything.
    with suppress(ValueError, TypeError):
        repository, text = json.loads(content)
        return Kept(str(repository), str(text))
    return Kept()


def _find_top(folder: str) -> str | None:
    """Return the nearest folder around *folder* whose `.git` git would accept."""
    for top in folders_around(os.path.realpath(folder)):
        git_dir = os.path.join(top, ".git")
        if os.path.isfile(git_dir) or all(
            os.path.exists(os.path.join(git_dir, name)) for name in ("HEAD", "objects", "refs")
        ):
            return top
    return None


def _read_ignored(place: Place) -> dict[str, str]:
    """Return what is not looked for in submodules, by their paths."""
    config = GitConfig({})
    with suppress(BadConfig):
        modules = read_config_file(os.path.join(place.worktree or "", ".gitmodules"))
        config = _read_own(find_common_dir(place.git_dir), place.git_dir).over(modules)
    names = [name.removesuffix(".ignore") for name in config.values if name.endswith(".ignore")]
    return {config.get(f"{name}.path") or "": config.get(f"{name}.ignore") or "" for name in names}


def _make_git_dir(environ: Mapping[str, str], common: str, place: Place) -> str:
    """Return a git directory, among the user's own files, like *common* and that of *place*."""
    parent = find_user_file(common, environ, "git-dirs")
    if parent is None:
        raise ProgramFailed("git", "is not started where the user has no home directory")
    files, links = _list_files(common, place), _list_links(common, place)
    key = hashlib.sha256(repr((files, sorted(links.items()))).encode()).hexdigest()
    folder = os.path.join(parent, key)
    with suppress(FileNotFoundError):
        # It is in use.
        os.utime(folder)
        return folder
    _sweep(parent)
    new = tempfile.mkdtemp(dir=parent)
    os.mkdir(os.path.join(new, "info"))
    for name, content in files.items():
        _write(new, name, content)
    for name, target in links.items():
        os.symlink(target, os.path.join(new, name))
    try:
        os.rename(new, folder)
    except OSError:
        # Another process was faster.
        shutil.rmtree(new)
        os.utime(folder)
    return folder


def _sweep(parent: str) -> None:
    """Make the folder of git directories; remove from it what was not used for a day."""
    os.makedirs(parent, mode=0o700, exist_ok=True)
    with os.scandir(parent) as entries:
        for each in entries:
            # Suppressed: another process sweeps too, or has named what it was making.
            with suppress(FileNotFoundError):
                if each.stat().st_mtime < time.time() - _FORGOTTEN_S:
                    shutil.rmtree(each.path, ignore_errors=True)


def _list_files(common: str, place: Place) -> dict[str, bytes]:
    found: dict[str, list[str]] = {}
    with suppress(BadConfig):
        found = _read_own(common, place.git_dir).values
    own = _spell({name: values for name, values in found.items() if name in _COPIED})
    kept = place.kept.text if place.kept.repository == common else ""
    config = f"{kept}{own}{_OURS}".encode(errors="surrogateescape")
    return {"config": config, "HEAD": _read_head(place.git_dir)}


def _list_links(common: str, place: Place) -> dict[str, str]:
    with os.scandir(common) as entries:
        shared = {each.name for each in entries if each.is_dir()} - _NOT_LINKED
    owners = dict.fromkeys((*shared, "packed-refs", "shallow", *_INFO), common)
    owners[_PATTERNS] = place.git_dir
    names = filter(lambda name: name.startswith("sharedindex."), os.listdir(place.git_dir))
    owners |= dict.fromkeys(names, place.git_dir)
    return {name: os.path.join(owner, name) for name, owner in owners.items()}


def _read_own(common: str, git_dir: str) -> GitConfig:
    """Read the settings of a repository, with the settings of one work tree."""
    config = read_config_file(os.path.join(common, "config"))
    if config.get_flag("extensions.worktreeConfig", default=False):
        config = read_config_file(os.path.join(git_dir, "config.worktree")).over(config)
    return config


def _spell(values: Mapping[str, list[str]]) -> str:
    return "".join(spell_setting(name, each) for name, all_ in values.items() for each in all_)


def _read_head(git_dir: str) -> bytes:
    path = os.path.join(git_dir, "HEAD")
    if os.path.islink(path):
        return b"ref: " + os.fsencode(os.readlink(path))
    return _read(path)


def _read(path: str) -> bytes:
    return read_if_there(path) if os.path.isfile(path) else b""


def _write(folder: str, name: str, content: bytes) -> None:
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)
