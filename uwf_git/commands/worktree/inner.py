"""Repositories inside a worktree: submodules that an agent has checked out, or others.

A commit has only their names. So a worktree goes only when all that they have is elsewhere too:
nothing is changed in them, and each of their commits is in a remote, or is the one that the
worktree began with.
"""

import os
from collections.abc import Mapping

from uwf_git.commands.worktree.repository import Git, git_in

_REPOSITORY_MODE = "160000 "


def find_unkept(
    environ: Mapping[str, str], git: Git, path: str, *, begun: str, now: str
) -> str | None:
    """Return a repository inside the work tree *path* that has what only it has; None if none has.

    *begun* and *now* are commits of the work tree's own repository *git*, at its beginning and end.

    Raises:
        ProgramFailed: git is missing, or failed.
    """
    known = _list_links(git, begun)
    for name in _list_links(git, now):
        inner = os.path.join(path, name)
        if not os.path.lexists(os.path.join(inner, ".git")):
            continue
        found = _find_unkept_in(environ, inner, known.get(name))
        if found is not None:
            return found
    return None


def _find_unkept_in(environ: Mapping[str, str], path: str, known: str | None) -> str | None:
    git = git_in(environ, path)
    head = git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if head.status:
        return path
    at = head.stdout.decode().strip()
    # Those inside it are asked themselves.
    words = ("status", "--porcelain", "--untracked-files=all", "--ignore-submodules=dirty")
    if git.ask(*words):
        return path
    ends = [] if known is None or git.run("cat-file", "-e", known).status else [known]
    if git.ask("rev-list", "-1", at, "--all", "--not", "--remotes", *ends):
        return path
    return find_unkept(environ, git, path, begun=at, now=at)


def _list_links(git: Git, commit: str) -> dict[str, str]:
    """Return the commits of other repositories that *commit* names, by their paths."""
    listed = git.ask("ls-tree", "-r", "-z", "--full-tree", commit).split("\0")
    links = (each.partition("\t") for each in listed if each.startswith(_REPOSITORY_MODE))
    return {path: about.rpartition(" ")[2] for about, _, path in links}
