"""The user's repository, as git itself sees it: its state, a new worktree, a tree out of one.

No hook of the repository runs: a hook may refuse a commit, and then an edit would be lost.
"""

import os
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.agents.tool import ToolRequest, run_tool
from uwf_git.errors import Refused, name_some
from uwf_git.git_environment import without_local_variables
from uwf_git.store.git.program import ProgramFailed, Ran, run_program

_SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.safecrlf=false")
_NAME, _ADDRESS = "uwf", "uwf@uwf"
_SHOWN = 3


class NotIsolated(Refused):
    """The work directory is in no repository with a commit, so there can be no worktree of it."""

    code = "not-isolated"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"no worktrees can be made from the work directory {path}: {problem}",
            hint="branches with `isolation: worktree` need a commit of a git repository to begin "
            "at; another directory: --workdir PATH",
            path=path,
        )


class NotClean(Refused):
    """The work directory has changes that a worktree would not have."""

    code = "not-clean"

    def __init__(self, path: str, names: list[str]) -> None:
        super().__init__(
            f"the repository of the work directory {path} has uncommitted changes: "
            f"{name_some(names, most=_SHOWN)}",
            hint="branches with `isolation: worktree` begin at its commit: commit, stash or ignore "
            f"them first (`git -C {shlex.quote(path)} status`)",
            path=path,
            changed=names,
        )


class Origin(NamedTuple):
    """The commit at which worktrees begin."""

    repository: str
    """Its git directory, the common one."""

    prefix: str
    """Where in the repository the work directory lies; empty at the top."""

    commit: str


class Git(NamedTuple):
    """git, told which repository it works on."""

    environ: Mapping[str, str]
    options: tuple[str, ...]

    def run(self, *words: str, **variables: str) -> Ran:
        """Run git to its end.

        Raises:
            ProgramFailed: there is no git.
        """
        return run_program(self._argv(words), self._environment(variables))

    def ask(self, *words: str, **variables: str) -> str:
        """Run git, and return what it printed, without the last newline.

        Raises:
            ProgramFailed: git is missing, or failed.
        """
        ran = self.run(*words, **variables)
        if ran.status:
            raise ProgramFailed("git", f"{words[0]} failed: {ran.last_line}")
        return os.fsdecode(ran.stdout).removesuffix("\n")

    def run_guarded(self, *words: str) -> None:
        """Run git so that it ends when this process does.

        Raises:
            ProgramFailed: git is missing, or failed.
        """
        request = ToolRequest(tuple(self._argv(words)), self._environment({}))
        try:
            ran = run_tool(request, on_output=lambda _chunk: None)
        except OSError as error:
            raise ProgramFailed("git", f"could not be started: {error.strerror}") from error
        if ran.exit_code:
            told = Ran(ran.exit_code, ran.head + ran.tail, b"").last_line
            raise ProgramFailed("git", f"{words[0]} failed: {told}")

    def _argv(self, words: tuple[str, ...]) -> list[str]:
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        return ["git", *settings, *self.options, *words]

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        clean = without_local_variables(self.environ)
        return {**clean, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", **variables}


def git_in(environ: Mapping[str, str], directory: str) -> Git:
    """Return git for the repository around *directory*."""
    return Git(environ, ("-C", directory))


def git_of(environ: Mapping[str, str], repository: str, *, worktree: str | None = None) -> Git:
    """Return git for the git directory *repository*, wherever ``.git`` files point to."""
    if worktree is None:
        return Git(environ, (f"--git-dir={repository}",))
    return Git(environ, ("-C", worktree, f"--git-dir={repository}", f"--work-tree={worktree}"))


def find_origin(environ: Mapping[str, str], workdir: str) -> Origin:
    """Return the commit of the repository around *workdir*, which has no uncommitted change.

    Raises:
        NotIsolated: it is in no work tree of a repository that has a commit.
        NotClean: something there is not committed, and not ignored.
        ProgramFailed: git is missing, or failed.
    """
    git = git_in(environ, workdir)
    asked = ("--is-inside-work-tree", "--path-format=absolute", "--git-common-dir", "--show-prefix")
    ran = git.run("rev-parse", *asked)
    inside, *rest = os.fsdecode(ran.stdout).split("\n")
    if ran.status or inside != "true" or len(rest) < len(("repository", "prefix")):
        # The first line has the reason; what follows are words about settings.
        told = os.fsdecode(ran.stderr).split("\n")[0].removeprefix("fatal: ")
        raise NotIsolated(workdir, told or "it is not in a work tree")
    head = git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if head.status:
        raise NotIsolated(workdir, "its repository has no commit yet")
    changed = git.ask("status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal")
    if changed:
        raise NotClean(workdir, [each[3:] for each in changed.split("\0") if each])
    return Origin(rest[0], rest[1], head.stdout.decode().strip())


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
    return git.ask(
        *("commit-tree", "--no-gpg-sign", *named, "-m", message, tree),
        GIT_AUTHOR_NAME=_NAME,
        GIT_AUTHOR_EMAIL=_ADDRESS,
        GIT_COMMITTER_NAME=_NAME,
        GIT_COMMITTER_EMAIL=_ADDRESS,
        **dates,
    )
