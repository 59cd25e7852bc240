"""The files of a thread on the machine that runs it: a clone of the project for each thread.

A bare mirror of the project, in which nothing of an agent runs, fetches and pushes; the agents work
in a clone of it. What the turns recorded, ``refs/uwf/work/<thread>``, is pushed to the project
before the step that names it, so another machine goes on with the files. A branch begins with
those of the thread around it.
"""

import hashlib
import os
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.commands.split.commits import name_work
from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.store.git.program import ProgramFailed, run_program

_HEAD = "%(trailers:key=Uwf-Head,valueonly)"


class Project(NamedTuple):
    """The project of one thread on this machine."""

    url: str
    base: str
    """The commit with which it begins; empty: HEAD of the project."""

    thread: ThreadId
    around: tuple[ThreadId, ...]
    """The threads around it, the nearest first."""

    folder: str
    """Where mirrors and clones are kept."""

    environ: Mapping[str, str]

    @property
    def workdir(self) -> str:
        """The clone in which the agents work."""
        return os.path.join(self.folder, "work", self.thread)

    @property
    def _mirror(self) -> str:
        digest = hashlib.sha256(self.url.encode()).hexdigest()[:16]
        return os.path.join(self.folder, "projects", f"{digest}.git")

    def prepare(self) -> None:
        """Make the clone, and bring its files to where the thread stands at the project.

        Raises:
            Refused: the project takes no refs below refs/uwf/.
            ProgramFailed: git is missing, or failed.
        """
        if not os.path.isdir(self._mirror):
            self._git("/", "init", "-q", "--bare", self._mirror)
        there = self._git(self._mirror, "ls-remote", self.url).split("\n")
        refs = dict(line.split("\t")[::-1] for line in there if "\t" in line)
        known = next(
            (each for each in (self.thread, *self.around) if name_work(each) in refs), None
        )
        self._git(self._mirror, "fetch", "-q", self.url, "+refs/heads/*:refs/heads/*")
        ref = name_work(self.thread)
        tip = refs.get("HEAD", "") if known is None else refs[name_work(known)]
        if known is not None:
            self._git(self._mirror, "fetch", "-q", self.url, f"+{name_work(known)}:{ref}")
        elif self.base:
            tip = self.base
        if known != self.thread:
            self._begin(tip, ref)
        if not os.path.isdir(self.workdir):
            self._git("/", "clone", "-q", "--no-checkout", self._mirror, self.workdir)
            self._git(self.workdir, "remote", "set-url", "origin", self.url)
        if self._find(self.workdir, ref) != tip:
            self._bring(tip, ref)

    def publish(self) -> None:
        """Push what the turns recorded to the project.

        Raises:
            ProgramFailed: git is missing, or failed.
        """
        ref = name_work(self.thread)
        if self._find(self.workdir, ref) != self._find(self._mirror, ref):
            self._git(self._mirror, "fetch", "-q", self.workdir, f"+{ref}:{ref}")
            self._git(self._mirror, "push", "-q", self.url, f"{ref}:{ref}")

    def _begin(self, tip: str, ref: str) -> None:
        """Let the ref begin at *tip*; that also tells whether the project takes it."""
        if not tip:
            raise Refused(
                f"{self.url} has no commit to begin with",
                code="project-empty",
                hint="push a commit there, or name one: --base COMMIT",
            )
        self._git(self._mirror, "update-ref", ref, tip)
        try:
            self._git(self._mirror, "push", "-q", self.url, f"{ref}:{ref}")
        except ProgramFailed as error:
            raise Refused(
                f"{self.url} does not take {ref}: {error.message}",
                code="project-refuses-work",
                hint="name a repository that takes refs below refs/uwf/, as a plain bare one; a "
                "hub of threads does not",
                ref=ref,
            ) from error

    def _bring(self, tip: str, ref: str) -> None:
        """Make the files those of *tip*; what was here and is not ignored goes."""
        self._git(self.workdir, "fetch", "-q", self._mirror, f"+{ref}:{ref}")
        head = self._git(self.workdir, "log", "-1", f"--format={_HEAD}", tip).strip() or tip
        self._git(self.workdir, "checkout", "-q", "--force", "--detach", head)
        self._git(self.workdir, "clean", "-q", "-fd")
        self._git(self.workdir, "read-tree", "-m", "-u", head, tip)
        self._git(self.workdir, "read-tree", head)

    def _find(self, repository: str, ref: str) -> str:
        return self._git(repository, "for-each-ref", "--format=%(objectname)", ref)

    def _git(self, place: str, *words: str) -> str:
        ran = run_program(
            ["git", "-c", "core.hooksPath=/dev/null", *words], self.environ, cwd=place
        )
        if ran.status:
            raise ProgramFailed("git", f"{words[0]} failed: {ran.last_line}")
        return ran.stdout.decode(errors="replace").strip()
