"""The files of a thread on the machine that runs it: a clone of the project for each thread.

A bare mirror of the project, in which nothing of an agent runs, fetches and pushes; the agents work
in a clone of it. What the turns recorded, ``refs/uwf/work/<thread>``, is pushed to the project
before the step that names it, so another machine goes on with the files. A branch begins with
the files of the thread around it.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from uwf_git.commands.split.commits import name_work
from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.store.disk.locks import hold_lock
from uwf_git.store.git.program import ProgramFailed, run_program
from uwf_git.store.oid import is_oid
from uwf_git.store.remotes.remotes import parse_remote_url
from uwf_git.store.remotes.transport_errors import RemoteFailed

_HEAD = "%(trailers:key=Uwf-Head,valueonly)"


class Project(NamedTuple):
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
        return os.path.join(self.folder, "work", self.thread)

    @property
    def _mirror(self) -> str:
        digest = hashlib.sha256(self.url.encode()).hexdigest()[:16]
        return os.path.join(self.folder, "projects", f"{digest}.git")

    @property
    def _ref(self) -> str:
        return name_work(self.thread)

    def prepare(self) -> None:
        """Make the clone, and bring its files to where the thread stands at the project."""
        with self._locked():
            self._prepare()

    def publish(self) -> None:
        ours = self._find(self.workdir, self._ref)
        if ours and ours != self._find(self._mirror, self._ref):
            with self._locked():
                self._publish(ours)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other workers of this machine from the mirror."""
        os.makedirs(os.path.dirname(self._mirror), exist_ok=True)
        with hold_lock(f"{self._mirror}.lock", wait=True):
            yield

    def _prepare(self) -> None:
        if not os.path.isdir(self._mirror):
            self._git("/", "init", "-q", "--bare", self._mirror)
        there = self._git(self._mirror, "ls-remote", self.url).split("\n")
        refs = dict(line.split("\t")[::-1] for line in there if "\t" in line)
        known = next(
            (each for each in (self.thread, *self.around) if name_work(each) in refs), None
        )
        self._git(self._mirror, "fetch", "-q", self.url, "+refs/heads/*:refs/heads/*")
        tip = refs.get("HEAD", "") if known is None else refs[name_work(known)]
        if known is not None:
            self._git(self._mirror, "fetch", "-q", self.url, f"+{name_work(known)}:{self._ref}")
        elif self.base:
            tip = self.base
        if known != self.thread:
            self._begin(tip)
        if not os.path.isdir(self.workdir):
            self._git("/", "clone", "-q", "--no-checkout", self._mirror, self.workdir)
            self._git(self.workdir, "remote", "set-url", "origin", self.url)
        ours = self._find(self.workdir, self._ref)
        if ours and self._is_ahead(ours, tip):
            # The last push failed: what was recorded here is the newest.
            self._publish(ours)
        elif ours != tip:
            self._bring(tip)

    def _is_ahead(self, ours: str, tip: str) -> bool:
        self._git(self._mirror, "fetch", "-q", self.workdir, self._ref)
        return ours != tip and not self._git(self._mirror, "rev-list", "-1", tip, f"^{ours}")

    def _publish(self, ours: str) -> None:
        """Push, then let the mirror know: a push that fails is tried again."""
        self._git(self._mirror, "fetch", "-q", self.workdir, self._ref)
        try:
            self._git(self._mirror, "push", "-q", self.url, f"{ours}:{self._ref}")
        except ProgramFailed as error:
            raise RemoteFailed(
                parse_remote_url(self.url, relative_to="/"), error.message
            ) from error
        self._git(self._mirror, "update-ref", self._ref, ours)

    def _begin(self, tip: str) -> None:
        """Let the ref begin at *tip*; that also tells whether the project takes it."""
        if not tip:
            raise Refused(
                f"{self.url} has no commit to begin with",
                code="project-empty",
                hint="push a commit there, or name one: --base COMMIT",
            )
        try:
            self._git(self._mirror, "push", "-q", self.url, f"{tip}:{self._ref}")
        except ProgramFailed as error:
            raise Refused(
                f"{self.url} does not take {self._ref}: {error.message}",
                code="project-refuses-work",
                hint="name a repository that takes refs below refs/uwf/, as a plain bare one; a "
                "hub of threads does not",
                ref=self._ref,
            ) from error
        self._git(self._mirror, "update-ref", self._ref, tip)

    def _bring(self, tip: str) -> None:
        """Make the files the files of *tip*; what was here and is not ignored goes."""
        self._git(self.workdir, "fetch", "-q", self._mirror, f"+{self._ref}:{self._ref}")
        said = self._git(self.workdir, "log", "-1", f"--format={_HEAD}", tip)
        # Anybody who may push there may have written it.
        head = said if is_oid(said) else tip
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
