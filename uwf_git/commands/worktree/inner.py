"""Keep what only a repository inside a worktree has: a checked out submodule, or another.

Of such a repository a tree has only the name of a commit. What is in none of its remotes becomes
one commit, and is fetched into a repository that outlives the worktree.
"""

import os
import re
import shutil
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from uwf_git.commands.worktree.record import Worktree, describe_work
from uwf_git.commands.worktree.repository import Git, commit_tree, find_commit, git_of
from uwf_git.model.names import ThreadId
from uwf_git.store.git.fenced import fenced, find_common_dir
from uwf_git.store.git.program import ProgramFailed

# git refuses these dots in the name of a ref.
_BAD_DOT = re.compile(r"(?<![\w-])\.|\.(?![\w-])|\.(?=lock(/|$))")
_LFS = ("lfs", "objects")
_FETCH = (
    *("-c", "protocol.version=2", "-c", "protocol.file.allow=always"),
    *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"),
)


class State(NamedTuple):
    """What is in a repository."""

    git: Git
    head: str | None
    tree: str
    """Everything in its work tree but what is ignored."""

    known: str | None
    """The commit of it that the worktree had at its beginning."""


def name_inner(thread: ThreadId) -> str:
    """Return what the refs begin with that have what repositories inside a worktree had."""
    return f"refs/uwf/inner/{thread}/"


def spell_name(path: str) -> str:
    """Return *path* as a part of the name of a ref."""
    return _BAD_DOT.sub("%2E", quote(os.fsencode(path)).replace("~", "%7E"))


def keep_state(
    environ: Mapping[str, str], worktree: Worktree, state: State, ref: str
) -> tuple[str | None, str | None]:
    """Keep at *ref* what only this repository inside *worktree* has.

    Returns:
        The commit that stands for it, None if nothing is in it; and the git directory that has
        *ref*, None if there was nothing to keep.

    Raises:
        ProgramFailed: git is missing, or failed.
    """
    ends = _list_ends(worktree, state)
    has_changed = state.tree != _read_tree(state.git, state.head)
    if not has_changed and not ends:
        return state.head, None
    git_dir = state.git.place.git_dir
    repository = _choose_repository(worktree, git_dir)
    to = git_of(environ, repository)
    parents = tuple(dict.fromkeys([*filter(None, [state.head]), *ends]))
    if not has_changed and parents == (state.head,):
        commit = parents[0]
    else:
        commit = _unite(state, parents, to, ref, worktree)
    if not _fetch(to, state.git, commit, ref):
        # A shallow repository gives its commits only to one that has the same ones.
        parents = tuple(_cut(state.git, each) for each in parents)
        commit = _unite(state, parents, to, ref, worktree)
        if not _fetch(to, state.git, commit, ref):
            raise ProgramFailed("git", f"could not fetch {commit} from {git_dir}")
    _copy_large_files(git_dir, repository)
    return commit, repository


def _list_ends(worktree: Worktree, state: State) -> list[str]:
    """List the newest commits that neither a remote of the repository has, nor its beginning."""
    git = state.git
    known = ["--not", "--remotes", *filter(None, [find_commit(git, state.known)])]
    if _goes(worktree, find_common_dir(git.place.git_dir)):
        stashed = git.ask("stash", "list", "--format=%H").split()
        asked = ["--all", *stashed, *known]
    elif state.head is not None:
        # Of a worktree within the worktree the branches stay.
        asked = [state.head, *known, "--branches", "--tags"]
    else:
        return []
    lines = [line.split() for line in git.ask("rev-list", "--parents", *asked).split("\n") if line]
    parents = {parent for _, *parents in lines for parent in parents}
    return sorted(commit for commit, *_ in lines if commit not in parents)


def _goes(worktree: Worktree, git_dir: str) -> bool:
    """Check whether *git_dir* goes with the worktree."""
    places = (os.path.realpath(worktree.path), worktree.git_dir)
    return f"{git_dir}{os.sep}".startswith(tuple(place + os.sep for place in places))


def _choose_repository(worktree: Worktree, git_dir: str) -> str:
    """Return the project's own repository of the submodule *git_dir*; the project's for others."""
    own = os.path.join(worktree.git_dir, "modules") + os.sep
    found = os.path.join(worktree.repository, "modules", git_dir.removeprefix(own))
    return found if git_dir.startswith(own) and os.path.isdir(found) else worktree.repository


def _unite(state: State, parents: tuple[str, ...], to: Git, ref: str, worktree: Worktree) -> str:
    """Return a commit of everything in the work tree and *parents*; that of *ref*, if it is it."""
    made = find_commit(to, ref)
    if made is not None:
        told = to.ask("rev-parse", f"{made}^{{tree}}", f"{made}^@")
        if told.split() == [state.tree, *parents]:
            return made
    return commit_tree(state.git, state.tree, parents, describe_work(worktree))


def _cut(git: Git, commit: str) -> str:
    """Return a commit with what *commit* has, without parents; always the same one."""
    date = git.ask("show", "--no-patch", "--format=%ct +0000", commit)
    message = f"{commit}, of a repository without its history"
    return commit_tree(git, _read_tree(git, commit), (), message, date=date)


def _read_tree(git: Git, commit: str | None) -> str:
    """Return the tree of *commit*, or the empty one."""
    if commit is None:
        return git.ask("hash-object", "-t", "tree", os.devnull)
    return git.ask("rev-parse", f"{commit}^{{tree}}")


def _copy_large_files(git_dir: str, repository: str) -> None:
    """Copy what git-lfs keeps beside the objects; each file is named by its content."""
    kept, to = os.path.join(git_dir, *_LFS), os.path.join(repository, *_LFS)
    if os.path.isdir(kept):
        shutil.copytree(kept, to, dirs_exist_ok=True)


def _fetch(to: Git, origin: Git, commit: str, ref: str) -> bool:
    """Fetch *commit* to *ref*; return whether it is there."""
    if find_commit(to, ref) != commit:
        # The other git, which sends it, reads the config of where it is fetched from.
        with fenced(origin.environ, origin.place) as there:
            to.run(*_FETCH, there["GIT_DIR"], f"+{commit}:{ref}")
    return find_commit(to, ref) == commit
