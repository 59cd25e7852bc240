"""Write what is in a work tree as a tree; what repositories inside it have is kept as commits."""

import os
import shutil
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from uwf_git.commands.worktree.inner import State, keep_state, name_inner, spell_name
from uwf_git.commands.worktree.record import Inner, Worktree
from uwf_git.commands.worktree.repository import Git, find_commit, git_of
from uwf_git.store.disk.durable import remove_file
from uwf_git.store.git.fenced import LINK, NOTHING_KEPT, Kept, Place, find_inner, list_links
from uwf_git.store.git.program import ProgramFailed


class _Place(NamedTuple):
    """A work tree, the outermost one or one inside it."""

    path: str
    git_dir: str
    begun: str | None
    """The commit at which it began."""

    copy: str
    """Where its index is copied to."""

    name: str
    """Its path below the outermost one, and /; empty for that."""

    ref: str
    """What the refs begin with that keep what is inside it."""


def name_index(path: str) -> str:
    """Return the path of the copy of the index of the worktree *path*, while that is written."""
    return path + ".index"


def write_tree(
    environ: Mapping[str, str],
    worktree: Worktree,
    *,
    git_dir: str,
    head: str,
    settings: Kept = NOTHING_KEPT,
) -> tuple[str, tuple[Inner, ...]]:
    """Write everything in a worktree, whose index is in *git_dir*, but what is ignored.

    Returns:
        The tree, and the repositories in it that had what was nowhere else: that is kept now.

    Raises:
        ProgramFailed: git is missing, or failed.
    """
    writer = _Writer(environ, worktree, settings, [])
    index, names = name_index(worktree.path), name_inner(worktree.thread)
    place = _Place(worktree.path, git_dir, worktree.base, index, "", names)
    tree = writer.write(place, head)
    return tree, tuple(sorted(writer.kept))


class _Writer(NamedTuple):
    """Writes the trees of a worktree and of all repositories inside it."""

    environ: Mapping[str, str]
    worktree: Worktree
    settings: Kept
    kept: list[Inner]

    def write(self, place: _Place, head: str | None) -> str:
        """Write everything in *place*, whose newest commit is *head*, but what is ignored."""
        at = Place(place.git_dir, place.path, place.copy, self.settings)
        git = Git(self.environ, at)
        # Not its own index: a killed agent may have left that locked, or in the middle of a merge.
        own = os.path.join(place.git_dir, "index")
        try:
            remove_file(place.copy + ".lock")
            if place.git_dir != self.worktree.repository and os.path.isfile(own):
                # With its times: by them git knows which files it has to read.
                shutil.copy2(own, place.copy)
            elif head is not None:
                git.ask("read-tree", head)
            links = list_links(self.environ, at)
            inner = _list_inner(git, place, links)
            # Without them: git would start another git in each that has a repository.
            _stage(git, {name: "0" * len(commit) for name, commit in links.items()}, mode="0")
            left_out = (f":(exclude,top,literal){name}" for name in inner)
            git.ask("add", "--all", "--", ".", *left_out)
            here = {name: commit for name, commit in links.items() if _is_folder(place, name)}
            kept = {name: self._keep(place, name) or links.get(name) for name in inner}
            _stage(git, {name: commit for name, commit in (here | kept).items() if commit})
            return git.ask("write-tree")
        finally:
            remove_file(place.copy)

    def _keep(self, outer: _Place, name: str) -> str | None:
        """Return the commit that stands for the repository *name*; None if nothing is in it."""
        path = os.path.join(outer.path, name)
        found = find_inner(self.environ, path)
        if found is None:
            raise ProgramFailed("git", f"takes {path} for no repository")
        git = git_of(self.environ, found.git_dir, worktree=path)
        head = find_commit(git, "HEAD")
        whole, ref = outer.name + name, outer.ref + spell_name(name)
        # What is inside it begins at what it names now.
        copy = outer.copy + ".inner"
        place = _Place(path, found.git_dir, head, copy, whole + "/", ref + "%2F")
        tree = self.write(place, head)
        known = _find_link(git_of(self.environ, outer.git_dir), outer.begun, name)
        state = State(git, head, tree, known)
        commit, repository = keep_state(self.environ, self.worktree, state, ref)
        if repository is not None and commit is not None:
            self.kept.append(Inner(whole, ref, commit, repository))
        return commit


def _stage(git: Git, links: Mapping[str, str], *, mode: str = LINK) -> None:
    """Let the index have these commits for repositories inside; with the mode 0 it has nothing."""
    rows = "".join(f"{mode} {commit}\t{name}\0" for name, commit in links.items())
    if rows:
        git.ask("update-index", "--replace", "-z", "--index-info", given=os.fsencode(rows))


def _is_folder(place: _Place, name: str) -> bool:
    path = os.path.join(place.path, name)
    return os.path.isdir(path) and not os.path.islink(path)


def _list_inner(git: Git, place: _Place, links: Iterable[str]) -> list[str]:
    """List the repositories in a work tree, by their paths; not those that are ignored."""
    words = ("--others", "--exclude-standard", "-z")
    others = git.ask("ls-files", *words).split("\0")
    # Of all else git lists the files, of repositories the folder.
    found = {*links, *(each.rstrip("/") for each in others if each.endswith("/"))}
    return sorted(each for each in found if os.path.lexists(os.path.join(place.path, each, ".git")))


def _find_link(git: Git, commit: str | None, name: str) -> str | None:
    """Return the commit that *commit* names for the repository *name* in it."""
    if commit is None:
        return None
    about, _, _ = git.ask("ls-tree", "-z", "--full-tree", commit, "--", name).partition("\t")
    return about.rpartition(" ")[2] if about.startswith(LINK) else None
