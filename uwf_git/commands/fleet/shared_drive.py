"""One run of a thread of a hub, in this machine's clone: claim, fetch, drive, push, release.

A step is pushed before the next agent begins. While an agent works, what steers the thread at the
hub is taken over, and the agent is stopped if the thread ended there or another process has claimed
it. If both sides have gone on, the first push wins: a clone that is a cache keeps its own side as a
fork and follows the hub.
"""

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Any, NamedTuple

from uwf_git.agents.group import cancellable, check_cancelled
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.caller import Caller
from uwf_git.commands.drive_thread import Drive, Driven, DriveRequest, Watcher, hold_drive
from uwf_git.commands.family import Family, list_present_descendants
from uwf_git.commands.fleet.claims import (
    POLL_S,
    TTL_S,
    Held,
    Hub,
    Keeper,
    list_claims,
    place_of,
    thread_claimed,
)
from uwf_git.commands.remote.fetch import ORIGIN, Fetched, fetch_remote
from uwf_git.commands.remote.push import push_remote
from uwf_git.commands.remote.push_plan import find_false_join, list_new_joins, with_branches
from uwf_git.commands.split import name_work
from uwf_git.commands.start import ForkRequest, fork_thread
from uwf_git.commands.step.ending import record_branches
from uwf_git.commands.step.record_turn import TurnInterrupted
from uwf_git.commands.step.step_thread import StepRequest, join_branches, settle_branches
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.commands.turn.turn import Played, Player, ThreadResult, Turn
from uwf_git.commands.worktree.chain import read_tip
from uwf_git.debug_log import debug
from uwf_git.errors import Conflict, Refused, UwfError
from uwf_git.model import schema_check  # noqa: F401 (for the forks that judge what was fetched)
from uwf_git.model.names import Oid, ThreadId, build_thread_id
from uwf_git.model.thread import ENDED
from uwf_git.store.git.program import ProgramFailed, run_program
from uwf_git.store.locks import RefLocked, hold_lock
from uwf_git.store.objects.commit import is_descendant
from uwf_git.store.remotes.remotes import (
    SharedRefs,
    add_remote,
    choose_remote,
    digest_url,
    list_remotes,
    parse_remote_url,
    read_shared,
    read_sides,
)
from uwf_git.store.remotes.transport import RemoteFailed
from uwf_git.store.store import Store, create_store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, find_head
from uwf_git.store.threads.history import find_tip, walk_trunks
from uwf_git.store.threads.naming import parse_thread_id, resolve_thread
from uwf_git.surroundings import read_clock_ms, without_local_variables

# The files of a thread on the machine that runs it: a clone of the project for each thread.
#
# A bare mirror of the project, in which nothing of an agent runs, fetches and pushes; the agents
# work in a clone of it. What the turns recorded, ``refs/uwf/work/<thread>``, is pushed to the
# project before the step that names it, so another machine goes on with the files. A branch begins
# with the files of the thread around it; what it does in a run of that thread is recorded for that
# thread, too.

# A hub that is away may be back, and a lock of it free.
NO_HUB = {RemoteFailed.code, RefLocked.code}

_FAREWELL_S = 20.0
"""How long a slow hub keeps a process that was interrupted; Kubernetes kills it after 30 s."""


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
        return os.path.join(self.folder, "projects", f"{digest_url(self.url)}.git")

    @property
    def _ref(self) -> str:
        return name_work(self.thread)

    def keep(self, thread: ThreadId, fork: ThreadId) -> None:
        """Let the files that *thread* has here be those of *fork*, which keeps its steps."""
        ours = os.path.isdir(self.workdir) and self._list(self.workdir).get(name_work(thread))
        if ours:
            self._git(self.workdir, "update-ref", name_work(fork), ours)
            self._git(self.workdir, "update-ref", "-d", name_work(thread))

    def prepare(self, family: Iterable[ThreadId] = ()) -> None:
        """Make the clone, and bring its files to where the thread stands at the project.

        *family*: whose recorded files the clone is to have.
        """
        with self._locked():
            # Each time: git makes whole what a kill has cut short.
            self._git("/", "init", "-q", "--bare", self._mirror)
            there = self._git(self._mirror, "ls-remote", self.url).split("\n")
            refs = dict(line.split("\t")[::-1] for line in there if "\t" in line)
            around = map(name_work, (self.thread, *self.around))
            known = next((each for each in around if each in refs), None)
            shared = [ref for ref in map(name_work, family) if ref in refs and ref != self._ref]
            moves = [f"+{each}:{each}" for each in ("refs/heads/*", *shared)]
            tip = refs.get("HEAD", "")
            if known is not None:
                tip = refs[known]
                moves.append(f"+{known}:{self._ref}")
            # A branch that is gone there may be in the way of another.
            self._git(self._mirror, "fetch", "-q", "--prune", self.url, *moves)
            if known is None and self.base:
                tip = self._find_base()
            if known != self._ref:
                self._begin(tip)
            if not os.path.isdir(self.workdir):
                # A clone that was cut short must not be taken for a whole one.
                part = f"{self.workdir}.part"
                shutil.rmtree(part, ignore_errors=True)
                self._git("/", "clone", "-q", "-o", "origin", "--no-checkout", self._mirror, part)
                self._git(part, "remote", "set-url", "origin", self.url)
                os.rename(part, self.workdir)
            here = self._list(self.workdir)
            # If the last push failed, what was recorded here is the newest.
            for ref in shared:
                if not self._is_ahead(ref, here.get(ref, ""), refs[ref]):
                    self._git(self.workdir, "fetch", "-q", self._mirror, f"+{ref}:{ref}")
            if not self._is_ahead(self._ref, here.get(self._ref, ""), tip):
                self._bring(tip)

    def publish(self, family: Iterable[ThreadId]) -> None:
        """Push what was recorded of the files of *family*."""
        here, there = self._list(self.workdir), self._list(self._mirror)
        refs = map(name_work, family)
        names = [ref for ref in refs if here.get(ref) not in {None, there.get(ref)}]
        if not names:
            return
        with self._locked():
            moved = {r: here[r] for r in names if self._is_ahead(r, here[r], there.get(r, ""))}
            if moved:
                self._push(moved)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other workers of this machine from the mirror."""
        os.makedirs(os.path.dirname(self._mirror), exist_ok=True)
        with hold_lock(f"{self._mirror}.lock", wait=True):
            yield

    def _is_ahead(self, ref: str, ours: str, tip: str) -> bool:
        """Return whether *ours*, the clone's *ref*, goes on from *tip*, or is it."""
        if ours in {"", tip}:
            return bool(ours)
        self._git(self._mirror, "fetch", "-q", "--no-auto-gc", self.workdir, ref)
        return not (tip and self._git(self._mirror, "rev-list", "-1", tip, f"^{ours}"))

    def _push(self, moved: Mapping[str, str]) -> None:
        """Push, then let the mirror know: a push that fails is tried again."""
        try:
            moves = [f"{oid}:{ref}" for ref, oid in moved.items()]
            self._git(self._mirror, "push", "-q", self.url, *moves)
        except ProgramFailed as error:
            url = parse_remote_url(self.url, relative_to="/")
            raise RemoteFailed(url, error.message) from error
        for ref, oid in moved.items():
            self._git(self._mirror, "update-ref", ref, oid)

    def _begin(self, tip: str) -> None:
        """Let the ref begin at *tip*; that also tells whether the project takes it."""
        if not tip:
            raise Refused(
                f"{self.url} has no commit {self.base or 'to begin with'}",
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
        self._git(self.workdir, "fetch", "-q", self._mirror, self._ref)
        head = read_tip(tip, self._git(self.workdir, "cat-file", "commit", tip)).head or tip
        self._git(self.workdir, "checkout", "-q", "--force", "--detach", head)
        self._git(self.workdir, "clean", "-q", "-fd")
        self._git(self.workdir, "read-tree", "-m", "-u", head, tip)
        self._git(self.workdir, "read-tree", head)
        # Last: if this is cut short, it is done again.
        self._git(self.workdir, "update-ref", self._ref, tip)

    def _find_base(self) -> str:
        with suppress(ProgramFailed):
            return self._git(self._mirror, "rev-parse", "--verify", f"{self.base}^{{commit}}")
        return ""

    def _list(self, repository: str) -> dict[str, str]:
        words = ("--format=%(refname) %(objectname)", name_work(ThreadId("")))
        told = self._git(repository, "for-each-ref", *words).split()
        return dict(zip(told[::2], told[1::2], strict=True))

    def _git(self, place: str, *words: str) -> str:
        # Named, for `safe.bareRepository` may forbid to find it.
        mirror = [f"--git-dir={place}"] if place == self._mirror else []
        # What was fetched has no ref at first; what agents dropped is kept as their user likes.
        gc = "gc.pruneExpire=2.weeks.ago" if mirror else "maintenance.auto=false"
        argv = ["git", *mirror, "-c", "core.hooksPath=/dev/null", "-c", gc, *words]
        environ = without_local_variables(self.environ, keep_settings=True)
        ran = run_program(argv, environ, cwd=place)
        if ran.status:
            # What follows is advice.
            lines = ran.stderr.decode(errors="replace").splitlines()
            said = next((each for each in lines if each.startswith("fatal: ")), ran.last_line)
            raise ProgramFailed("git", f"{words[0]} failed: {said}")
        return ran.stdout.decode(errors="replace").strip()


class Share(NamedTuple):
    remote: str | None = None
    """The hub; None: the only remote, or origin."""

    ttl_s: float = TTL_S
    """After how many seconds without a beat a claim is dead."""

    poll_s: float = POLL_S
    over: Oid | None = None
    """The dead claim that this run takes over."""

    dead: frozenset[str] = frozenset()
    """The claims of threads around that are dead."""

    new_id: Callable[[], ThreadId] | None = None
    """The clone is a cache: a step that came too late is kept as a fork with such an id."""

    project: Project | None = None


@contextmanager
def hold_shared_drive(
    store: Store, caller: Caller, request: DriveRequest, *, share: Share, watcher: Watcher
) -> Iterator["SharedDrive"]:
    """Claim the thread and hold its drive lock; yield the drive, which ``run`` runs."""
    text = request.step.thread
    thread = parse_thread_id(text) or resolve_thread(store, text)
    shared = SharedDrive(store, caller, thread, share)
    # A machine that has nothing of the thread learns what to lock.
    shared.fetch()
    step = request.step._replace(thread=thread, play=shared.attend(request.step.play))
    is_known = shared.is_end_known()
    may_have_ended = request.may_have_ended or is_known is False
    request = request._replace(step=step, may_have_ended=may_have_ended)

    def on_step(stepped: ThreadResult) -> None:
        watcher.on_step(stepped)
        # A step is pushed with what follows it, before the next agent; nothing follows these.
        if stepped.thread != thread and stepped.status not in {"ready", "split"}:
            shared.push()

    pushing = watcher.then(shared.push)._replace(on_step=on_step)
    # The lock first: a claim of this clone is then known to be dead.
    with (
        hold_drive(store, caller, request, watcher=pushing) as drive,
        nullcontext() if is_known else shared.claimed(and_branches=not request.is_branch),
        cancellable(shared.cancelled),
    ):
        shared.drive = drive
        yield shared


class SharedDrive:
    drive: Drive
    _held: Held

    def __init__(self, store: Store, caller: Caller, thread: ThreadId, share: Share) -> None:
        self._store, self._caller, self._thread, self._share = store, caller, thread, share
        self._hub = Hub(store, caller, choose_remote(store.config, share.remote))
        self.cancelled, self._pushing = threading.Event(), threading.Lock()
        self._family = Family(store, thread)
        self._follower: threading.Thread | None = None
        self._until: float | None = None

    def is_end_known(self) -> bool | None:
        """Return whether the hub has the end that a run recorded; None if there is no end here."""
        head = find_head(self._store, self._thread)
        there = read_shared(self._store, self._hub.remote).find_tip(self._thread)
        return there in {None, head.commit} if head is not None and head.archived else None

    @contextmanager
    def claimed(self, *, and_branches: bool) -> Iterator[None]:
        """Hold the claim; the clone is then as new as the hub, and the hub as the clone.

        *and_branches*: and those that others have of its branches, which are run here, too.
        """
        share = self._share
        keeper = Keeper(self._hub, ttl_s=share.ttl_s, poll_s=share.poll_s)
        with ExitStack() as taken:
            try:
                held = keeper.take(self._thread, over=share.over, on_look=self._on_look)
                taken.callback(self._say, keeper.release, held)
                self._held = held
                self._follow()
                self._check_around()
                if and_branches:
                    claims = list_claims(self._hub.look())
                    for branch in list(list_present_descendants(self._store, self._thread)):
                        if branch in claims:
                            again = keeper.take(branch, on_look=lambda _refs: None)
                            taken.callback(self._say, keeper.release, again)
                if share.project is not None:
                    share.project.prepare(with_branches(self._store, [self._thread]))
                self.push()
                # What was interrupted, too; if that fails, the next run here begins with it.
                taken.callback(lambda: [] if held.is_lost.is_set() else self._say(self._push_once))
                yield
            except (TurnInterrupted, KeyboardInterrupt):
                self._until = time.monotonic() + _FAREWELL_S
                raise

    def _say(self, say: Callable[..., None], *what: Any) -> None:
        """Tell the hub what is left to tell, after Ctrl-C only for a few seconds in all."""

        def tell() -> None:
            with suppress(UwfError, OSError):
                say(*what)

        if self._until is None:
            tell()
            return
        # The claim of a process that ends dies by itself.
        last = threading.Thread(target=tell, daemon=True)
        last.start()
        last.join(max(0.0, self._until - time.monotonic()))

    def _check_around(self) -> None:
        """Leave a branch to the machine that runs a thread around it, and its branches with it."""
        own = find_tip(self._store, self._thread)
        around = [] if own is None else list(walk_trunks(self._store, own))
        claims = list_claims(self._hub.look()) if around else {}
        for thread in (each.record.thread for each in around):
            if claims.get(thread, "") not in {"", *self._share.dead}:
                found = self._hub.read_claims(thread).get(thread)
                if found is not None and found.said.get("place") != place_of(self._store):
                    raise thread_claimed(thread, found)

    def run(self) -> Driven:
        """Drive until there is a reason to stop; join branches that have all ended, and go on.

        Raises:
            ClaimLost: the thread went on elsewhere.
        """
        known: SharedRefs | None = None
        until = 0.0
        while True:
            try:
                driven = self.drive.run()
                if driven.steps or not self.is_end_known():
                    self.push()
                if driven.stopped != "split" or not self._join():
                    return driven
            except (TurnInterrupted, KeyboardInterrupt):
                if self._until is not None or not self.cancelled.is_set():
                    raise
                self._go_on()
            except Conflict as error:
                if error.code not in {"ended-elsewhere", "fetch-first", "push-diverged"}:
                    raise
                self._go_on()
                seen = read_shared(self._store, self._hub.remote)
                if seen != known:
                    known, until = seen, time.monotonic() + self._share.ttl_s
                elif time.monotonic() >= until:
                    # There is nothing newer there, whatever the hub says.
                    raise
                else:
                    time.sleep(self._share.poll_s)

    def _go_on(self) -> None:
        """Follow the hub after the thread was killed there, or a branch ended.

        Raises:
            ClaimLost: the thread itself went on elsewhere.
        """
        # First: a loss that comes now is to interrupt what goes on.
        self.cancelled.clear()
        thread, remote = self._thread, self._hub.remote.name
        kept = self._follow().get(thread)
        tip, is_lost = find_tip(self._store, thread), self._held.is_lost.is_set()
        status = "unknown" if tip is None else tip.record.status
        if status == "killed" and not is_lost:
            # The drive tells by whom.
            return
        if kept or is_lost or status in {"unknown", *ENDED}:
            what = f"; what was done here is kept as {kept}" if kept else ""
            raise Conflict(
                f"thread {thread} ended, or was taken over, at {remote} while it ran here{what}",
                code="claim-lost",
                hint=f"`uwf fetch {remote} {thread}` shows where it stands there",
                thread=thread,
                remote=remote,
                kept=kept,
            )

    def attend(self, play: Player) -> Player:
        """Return a player that pushes before a turn and looks at the hub after the turn."""

        def attended(turn: Turn) -> Played:
            self._held.role = turn.role
            self.push()
            played = play(turn)
            if played.is_kept and not turn.asked.checks and not self.cancelled.is_set():
                # Recorded now, and pushed at the end: who goes on may have nothing of this machine.
                self._until = time.monotonic() + _FAREWELL_S
                return play(turn)
            is_interrupted = (played.error or {}).get("kind") == "interrupted"
            with suppress(UwfError):
                # Who was interrupted by Ctrl-C is to end soon, whatever the hub does.
                if (played.is_stopped or not is_interrupted) and self._has_news(self._hub.look()):
                    self.fetch()
            return played

        return attended

    def push(self) -> None:
        """Push the thread and its branches; while the hub cannot take them, keep the claim."""
        if self._until is not None:
            # The process ends; what is left is pushed then.
            raise KeyboardInterrupt
        until = time.monotonic() + self._share.ttl_s
        while True:
            try:
                # Branches are played in several threads of Python.
                with self._pushing:
                    check_cancelled()
                    self._push_once()
                    check_cancelled()
            except UwfError as error:
                if error.code not in NO_HUB or time.monotonic() >= until:
                    raise
            else:
                return
            check_cancelled()
            time.sleep(self._share.poll_s)

    def _push_once(self) -> None:
        store, caller, remote = self._store, self._caller, self._hub.remote
        seen, project = read_shared(store, remote), self._share.project
        rows = read_shared(store)._replace(workflows={}).rows()
        new = {ThreadId(name) for kind, name, oid in rows if seen.find(kind, name) != oid}
        family, known = with_branches(store, [self._thread], seen), self._family
        with suppress(UwfError):  # what agents have started keeps nothing from going on
            if started := [x for x in new if x not in known and known.has_started(x)]:
                push_remote(store, caller, remote.name, started)
        if new.isdisjoint(family):
            return
        if project is not None and os.path.isdir(project.workdir):
            with suppress(UwfError):  # as the push tells
                tip = find_tip(store, self._thread)
                if tip is not None and tip.record.status == "split":
                    # What branches have left by now: only the thread's own files are brought.
                    record_branches(store, caller, tip, named=project.workdir)
            project.publish(family)
        if failure := push_remote(store, caller, remote.name, [self._thread]).failure():
            raise failure

    def _on_look(self, refs: Mapping[str, Oid]) -> None:
        """Take over what moved the thread or a branch of it; an agent may be at work."""
        if self._held.is_lost.is_set():
            self.cancelled.set()
        elif not (self._follower and self._follower.is_alive()) and self._has_news(refs):
            # A fetch may take longer than a claim lives.
            self._follower = threading.Thread(target=self._take_over, daemon=True)
            self._follower.start()

    def _list_family(self) -> list[ThreadId]:
        return [self._thread, *list_present_descendants(self._store, self._thread)]

    def _has_news(self, refs: Mapping[str, Oid]) -> bool:
        """Return whether *refs* of the hub tell of the family what this clone has not seen."""
        seen = read_shared(self._store, self._hub.remote)
        return any(
            refs.get(ACTIVE + each) != seen.threads.get(each)
            or refs.get(ARCHIVE + each) != seen.archive.get(each)
            for each in self._list_family()
        )

    def _take_over(self) -> None:
        with suppress(UwfError):  # the next look tries again
            self.fetch()
            for each in self._list_family():
                sides = read_sides(self._store, self._hub.remote, each)
                at = sides.archived or sides.active
                # What is ahead here is not pushed yet; anything else could not be taken over.
                if at and sides.there and not is_descendant(self._store.objects, at, sides.there):
                    debug("6E3VJ0KD", "moved at the hub", thread=each)
                    self.cancelled.set()

    def fetch(self) -> Fetched:
        store, name = self._store, self._hub.remote.name
        fetched = fetch_remote(store, self._caller, name, [self._thread], and_workflows=True)
        if fetched.of("refused") and (failure := fetched.failure()):
            raise failure
        return fetched

    def _follow(self) -> dict[ThreadId, ThreadId]:
        """Fetch; in a cache keep what has diverged as forks; return these."""
        fetched, kept, new_id = self.fetch(), dict[ThreadId, ThreadId](), self._share.new_id
        if new_id is None:
            # What the hub does not have yet is pushed.
            if (failure := fetched._replace(missing=()).failure()) is not None:
                raise failure
            return kept
        # A thread around that joined the end of a diverged branch comes after the branch.
        apart = {each.thread: each.local for each in fetched.of("diverged")}
        for thread, local in {**apart, **self._list_false_joins()}.items():
            request = ForkRequest(thread, at=local)
            fork = fork_thread(self._store, self._caller, request, thread=new_id()).thread
            kept[thread] = fork
            if self._share.project is not None:
                self._share.project.keep(thread, fork)
        return kept

    def _list_false_joins(self) -> dict[ThreadId, Oid]:
        """List where threads of the family are that joined a branch which the hub has elsewhere."""
        seen, found = read_shared(self._store, self._hub.remote), dict[ThreadId, Oid]()
        for thread in reversed(self._list_family()):
            tip, known = find_tip(self._store, thread), seen.find_tip(thread)
            if tip is not None and known is not None:
                ends = list_new_joins(self._store, tip.commit.oid, known)
                if find_false_join(self._store, ends, seen):
                    found[thread] = tip.commit.oid
        return found

    def _join(self) -> bool:
        """Settle and join the branches if they have ended; return whether the thread goes on."""
        settle_branches(self._store, self._caller, self._thread)
        joined = join_branches(self._store, self._caller, self._thread)
        self.push()
        return joined is not None


# One task of many machines: run one thread of a hub in this machine's clone of it, until it stops.
#
# The clone lies at `~/.uwf/hubs/<digest of the URL>.git`, is made at first use, and is a cache: it
# holds the threads that ran here. What a driver sends is a ``Job`` of plain values, without
# secrets; what comes back is advice, the hub's refs are the truth.


class Job(NamedTuple):
    hub: str
    """The URL of the hub, as each machine reaches it."""

    thread: str
    ttl_s: float
    poll_s: float
    over: str = ""
    """The dead claim to take over; empty: none."""

    workdir: str = ""
    """The directory of its agents on each machine; empty: one of its own."""

    project: str = ""
    """The URL of the repository in a clone of which they work; empty: none."""

    base: str = ""
    """The project's commit with which a thread begins; empty: its HEAD."""

    around: tuple[str, ...] = ()
    """The threads around it, the nearest first."""

    dead: tuple[str, ...] = ()
    """The dead claims of these threads."""

    allowed: tuple[str, ...] = ()
    """What may run beside what the worker's own list trusts: payloads as JSON."""

    max_steps: int = 0
    """The most steps of the run; 0: no limit."""


class Done(NamedTuple):
    thread: str
    host: str
    stopped: str
    """As ``Driven.stopped``; or the code of the error that ended it."""

    steps: int = 0
    said: str = ""


def run_thread(job: Job) -> Done:
    """Run *job* on this machine; what ends it is told, and never raised."""
    environ = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    host = socket.gethostname()
    try:
        store, workdir, share = open_worker(job, environ)
        caller = Caller(read_clock_ms, environ, workdir)
        choice = Choice(default=environ.get("UWF_AGENT"), allowed=frozenset(job.allowed))
        step = StepRequest(job.thread, agent_player(None), choice, workdir)
        request = DriveRequest(step, job.max_steps or None, is_branch=True, may_do_nothing=True)
        with hold_shared_drive(store, caller, request, share=share, watcher=_SILENT) as drive:
            driven: Driven = drive.run()
    except UwfError as error:
        return Done(job.thread, host, error.code, said=error.message)
    said = driven.failure.message if driven.failure is not None else driven.last.said
    return Done(job.thread, host, driven.stopped, driven.steps, said)


def open_worker(job: Job, environ: Mapping[str, str]) -> tuple[Store, str, Share]:
    """Open this machine's clone of the hub, and find where the agents of *job* run."""
    thread, around = ThreadId(job.thread), tuple(ThreadId(each) for each in job.around)
    home = environ.get("HOME", "")
    folder = home and os.path.join(home, ".uwf")
    with suppress(OSError):
        os.makedirs(folder, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise Refused(
            f"the clone of the hub cannot be kept in HOME, which is {home or 'not set'}",
            code="no-home-for-hubs",
            hint="set HOME to a directory that you may write",
        )
    over, dead = Oid(job.over) if job.over else None, frozenset(job.dead)
    share = Share(ORIGIN, job.ttl_s, job.poll_s, over, dead, _new_id)
    workdir = job.workdir
    if job.project:
        project = Project(job.project, job.base, thread, around, folder, environ)
        share, workdir = share._replace(project=project), project.workdir
    elif not workdir:
        workdir = os.path.join(folder, "work", thread)
        os.makedirs(workdir, exist_ok=True)
    path = os.path.join(folder, "hubs", f"{digest_url(job.hub)}.git")
    # Another worker of this machine may do the same.
    with hold_lock(os.path.join(folder, "hubs.lock"), wait=True):
        store = create_store(path, environ=environ)
        if not any(each.name == ORIGIN for each in list_remotes(store.config)):
            add_remote(store, ORIGIN, job.hub, cwd=os.getcwd())
    return store, workdir, share


def _new_id() -> ThreadId:
    return build_thread_id(read_clock_ms(), os.urandom(10))


_SILENT = Watcher(*[lambda *_what: None] * 3)
