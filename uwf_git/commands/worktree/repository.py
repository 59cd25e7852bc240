"""The user's repository, as git itself sees it: its state, a new worktree, a tree out of one.

No hook of the repository runs either: it may refuse a commit, and then an edit would be lost.
"""

import os
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.agents.tool import ToolRequest, run_tool
from uwf_git.errors import Refused, name_some
from uwf_git.store.git.fenced import (
    NOTHING_KEPT,
    Kept,
    Place,
    fenced,
    find_common_dir,
    find_place,
    list_uncommitted,
    run_fenced,
)
from uwf_git.store.git.program import ProgramFailed, Ran

_NAME, _ADDRESS, _ROLES = "uwf", "uwf@uwf", ("AUTHOR", "COMMITTER")
_SHOWN = 3


def _not_isolated(path: str, problem: str) -> Refused:
    return Refused(
        f"no worktrees can be made from the work directory {path}: {problem}",
        code="not-isolated",
        hint="branches with `isolation: worktree` need a commit of a git repository to begin "
        "at; another directory: --workdir PATH",
        path=path,
    )


class Origin(NamedTuple):
    """The commit at which worktrees begin."""

    repository: str
    """Its git directory, the common one."""

    prefix: str
    """Where in the repository the work directory lies; empty at the top."""

    commit: str


class Git(NamedTuple):
    """git, told which repository it works on; nothing that this names runs."""

    environ: Mapping[str, str]
    place: Place

    def run(self, *words: str, given: bytes = b"") -> Ran:
        """Run git to its end.

        Raises:
            ProgramFailed: there is no git.
        """
        return run_fenced(self.environ, self.place, *words, given=given)

    def ask(self, *words: str, given: bytes = b"") -> str:
        """Run git, and return what it printed, without the last newline.

        Raises:
            ProgramFailed: git is missing, or failed.
        """
        ran = self.run(*words, given=given)
        if ran.status:
            raise ProgramFailed("git", f"{words[0]} failed: {ran.last_line}")
        return os.fsdecode(ran.stdout).removesuffix("\n")

    def run_guarded(self, *words: str) -> None:
        """Run git so that it ends when this process does.

        Raises:
            ProgramFailed: git is missing, or failed.
        """
        with fenced(self.environ, self.place) as environment:
            into = self.place.worktree or environment["GIT_DIR"]
            request = ToolRequest(("git", "-C", into, *words), environment)
            try:
                ran = run_tool(request, on_output=lambda _chunk: None)
            except OSError as error:
                raise ProgramFailed("git", f"could not be started: {error.strerror}") from error
        if ran.exit_code:
            told = Ran(ran.exit_code, ran.head + ran.tail, b"").last_line
            raise ProgramFailed("git", f"{words[0]} failed: {told}")


def git_of(
    environ: Mapping[str, str],
    git_dir: str,
    *,
    worktree: str | None = None,
    kept: Kept = NOTHING_KEPT,
) -> Git:
    """Return git for the git directory *git_dir*, wherever ``.git`` files point to."""
    return Git(environ, Place(git_dir, worktree, kept=kept))


def find_origin(environ: Mapping[str, str], workdir: str, *, kept: Kept = NOTHING_KEPT) -> Origin:
    """Return the commit of the repository around *workdir*, which has no uncommitted change.

    Raises:
        Refused: it is in no work tree of a repository that has a commit.
        Refused: something there is not committed, and not ignored.
        ProgramFailed: git is missing, or failed.
    """
    place = find_place(environ, workdir, kept)
    if isinstance(place, str):
        raise _not_isolated(workdir, place)
    commit = find_commit(Git(environ, place), "HEAD")
    if commit is None:
        raise _not_isolated(workdir, "its repository has no commit yet")
    changed = list_uncommitted(environ, place)
    if changed:
        raise Refused(
            f"the repository of the work directory {workdir} has uncommitted changes: "
            f"{name_some(changed, most=_SHOWN)}",
            code="not-clean",
            hint="branches with `isolation: worktree` begin at its commit: commit, stash or ignore "
            f"them first (`git -C {shlex.quote(workdir)} status`)",
            path=workdir,
            changed=changed,
        )
    prefix = os.path.relpath(os.path.realpath(workdir), place.worktree)
    return Origin(
        find_common_dir(place.git_dir), "" if prefix == os.curdir else prefix + os.sep, commit
    )


def find_commit(git: Git, name: str | None) -> str | None:
    """Return the commit that *name* means; None if git knows none."""
    if name is None:
        return None
    ran = git.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return None if ran.status else ran.stdout.decode().strip()


def commit_tree(
    git: Git, tree: str, parents: tuple[str, ...], message: str, *, date: str | None = None
) -> str:
    """Write a commit that no person made, unsigned, and return its id.

    Its date is *date*, as git spells it, or now.

    Raises:
        ProgramFailed: git failed.
    """
    named = [word for parent in parents for word in ("-p", parent)]
    dates = {} if date is None else {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    nobody = {f"GIT_{role}_NAME": _NAME for role in _ROLES}
    nobody |= {f"GIT_{role}_EMAIL": _ADDRESS for role in _ROLES}
    git = git._replace(environ={**git.environ, **nobody, **dates})
    return git.ask("commit-tree", "--no-gpg-sign", *named, "-m", message, tree)
