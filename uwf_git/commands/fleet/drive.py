"""`uwf drive`: run everything at a hub that can go on, on the machines of an executor.

The driver keeps nothing: what can go on follows from the hub's refs, who runs it from the claims.
Two drivers do no harm, and a killed one costs time. An executor is whatever has ``submit`` as
``concurrent.futures.Executor``; a task runs one thread until it stops, and a branch is a thread.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Protocol, get_args

from uwf_git.commands.caller import Caller
from uwf_git.commands.drive_thread import StoppedBy
from uwf_git.commands.family import Branch, BranchHeld, Family, check_ancestors, list_branches
from uwf_git.commands.fleet.claims import Hub, Watch, list_claims, list_ended_claims
from uwf_git.commands.fleet.shared_drive import NO_HUB, Done, Job, run_thread
from uwf_git.commands.remote.fetch import fetch_remote
from uwf_git.commands.remote.push import push_remote
from uwf_git.commands.split import find_container
from uwf_git.commands.step.step_thread import list_leaves, sweep_held
from uwf_git.commands.turn.choose_agent import is_person, may_run
from uwf_git.commands.turn.flow import find_limit, find_steps_left
from uwf_git.commands.turn.next_move import decide_next
from uwf_git.debug_log import debug
from uwf_git.errors import Refused, UwfError
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.names import Oid, ThreadId
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import END, describe_check
from uwf_git.store.remotes.remotes import choose_remote, read_shared
from uwf_git.store.remotes.transport import RemoteFailed
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, Head, find_head
from uwf_git.store.threads.history import (
    Snapshot,
    find_tip,
    get_role,
    get_typed,
    get_workflow,
    read_snapshot,
    walk_trunks,
)
from uwf_git.store.threads.naming import parse_thread_id, resolve_thread
from uwf_git.store.trust import agent_text, find_meant_files

# What of a hub can go on: found from the refs and commits that a store has, after a fetch.

Standing = tuple[Oid | None, ...]
"""The heads of a thread, its branches and the threads around: a run rests until a head moves."""


class Runnable(NamedTuple):
    thread: ThreadId
    standing: Standing
    around: tuple[ThreadId, ...]
    """The threads around it, the nearest first."""

    allowed: tuple[str, ...]
    """The commands that are trusted here, as a job carries them."""

    root: ThreadId | None = None
    """The thread around it whose limits hold for it and its siblings; None if there is no limit."""

    left: int | None = None
    """How many steps these may still take."""

    refused: str = ""
    """Why it takes no step."""

    over: Oid | None = None
    """The dead claim that its run is to take over, which is there until the run begins."""


def find_runnable(
    store: Store, head: Head, request: "FleetRequest", *, now_ms: int
) -> Runnable | None:
    """Return how the thread at *head* can go on; None if it cannot now."""
    snapshot = read_snapshot(store, head.commit)
    status = snapshot.record.status
    standing: Standing = (head.commit,)
    if status == "split":
        branches = list_branches(store, snapshot)
        standing += tuple(None if each.head is None else each.head.commit for each in branches)
        if not _has_winner(snapshot, branches) and not all(
            _is_at_rest(store, each) for each in branches
        ):
            return None
    elif status == "waiting":
        waiting = snapshot.get_present().waiting
        until = None if waiting is None else waiting.until
        if until is None or not request.wait or until > now_ms:
            return None
    elif status != "ready":
        return None
    check_ancestors(store, snapshot)
    around = list(walk_trunks(store, snapshot))
    if around and _has_winner(around[0], list_branches(store, around[0])):
        # It is given up as soon as the thread around joins.
        return None
    standing += tuple(each.commit.oid for each in around)
    role = _find_role(snapshot)
    allowed, refused = _judge_commands(store, snapshot, request)
    found = Runnable(
        head.thread,
        standing,
        tuple(each.record.thread for each in around),
        tuple(sorted(allowed)),
        refused=refused.get(role or "", ""),
    )
    return found if role is None or not around else _add_limits(store, snapshot, found, around[-1])


def _find_role(snapshot: Snapshot) -> str | None:
    """Return which role takes the next step; None if it is no step of a role that comes next."""
    if snapshot.record.status == "split":
        return None
    present = snapshot.get_present()
    turn = decide_next(snapshot, present, get_workflow(snapshot, present.workflow))
    return None if turn.splits or turn.role == END else turn.role


def _has_winner(tip: Snapshot, branches: list[Branch]) -> bool:
    found = tip.get_present().split
    policy = {} if found is None else find_container(tip, found.at).policy
    return policy.get("join") == "any" and any(each.has_ended for each in branches)


def _is_at_rest(store: Store, branch: Branch) -> bool:
    if branch.head is None or branch.has_ended:
        return branch.has_ended
    snapshot = read_snapshot(store, branch.head.commit)
    if snapshot.record.status != "split":
        return snapshot.record.status == "failed"
    return all(_is_at_rest(store, each) for each in list_branches(store, snapshot))


def _judge_commands(
    store: Store, snapshot: Snapshot, request: "FleetRequest"
) -> tuple[set[str], dict[str, str]]:
    """Return the commands that may run, and by role why one may not."""
    job = request.job
    allowed: set[str] = set()
    refused: dict[str, str] = {}
    named = snapshot.record.workflow_name
    for role, payloads in _list_commands(snapshot, snapshot.get_present()).items():
        for payload in payloads:
            if find_meant_files(payload, None) is None and not (job.workdir or job.project):
                refused[role] = f"{payload['command']} is a relative path, and of no --project"
            elif request.trust or may_run(
                store, payload, workflow=named, workdir=job.workdir or None
            ):
                allowed.add(agent_text(payload))
            else:
                refused[role] = (
                    f"{payload['command']} is not trusted: `uwf agent trust`, or --trust"
                )
    return allowed, refused


def _list_commands(snapshot: Snapshot, present: ThreadState) -> Mapping[str, list[dict[str, Any]]]:
    """List the payloads of the agent and the checks of each role, without people."""
    workflow = get_workflow(snapshot, present.workflow)
    listed: dict[str, list[dict[str, Any]]] = {}
    for role, node in workflow.roles.items():
        listed[role] = [describe_check(each) for each in get_role(snapshot, node).checks]
        if role in present.binding:
            agent = get_typed(snapshot, present.binding[role], AGENT_CONFIG)
            listed[role] += [] if is_person(agent) else [agent.payload]
    return listed


def _add_limits(store: Store, snapshot: Snapshot, found: Runnable, root: Snapshot) -> Runnable:
    """Add what is left of the limits of *root*, which hold for a branch and its siblings."""
    if not root.get_present().limits:
        return found
    reached = find_limit(store, snapshot)
    if reached is not None:
        return found._replace(refused=found.refused or reached.message, left=0)
    thread = root.record.thread
    return found._replace(root=thread, left=find_steps_left(store, thread))


# A driver gives the claim of its own task more time: the executor may run it elsewhere by itself.
_PATIENCE = 1.25
_MOST_DEATHS = 3
"""How often a task may die with its machine, or find no hub, before its thread rests."""

_LOST = "lost"

# Somebody else goes on with the thread: it is looked at again after a while.
_ELSEWHERE = {
    "thread-claimed",
    "claim-lost",
    "thread-busy",
    "fetch-first",
    "push-diverged",
    "ended-elsewhere",
}
# A hub whose disk was full may have room again, and what was damaged there may be mended, too.
_NO_HUB = {*NO_HUB, "push-refused", "refs-refused"}


class Executor(Protocol):
    """Runs a function in another process, perhaps on another machine."""

    def submit(self, function: Callable[[Job], Done], job: Job, /) -> "Future[Done]":
        """Run ``function(job)``."""


class FleetRequest(NamedTuple):
    job: Job
    """The job of every thread, without its name."""

    remote: str | None = None
    threads: tuple[str, ...] = ()
    """Only these and their branches; empty: all that the hub has."""

    jobs: int = 1000
    """How many are submitted at once."""

    trust: bool = False
    """The commands of a thread may run wherever the thread does."""

    wait: bool = False
    """Go on after usage limits."""

    follow: bool = False
    """Wait for new work when nothing can go on."""


class FleetReport(NamedTuple):
    on_moved: Callable[[ThreadId, str], None]
    """A thread has moved at the hub; the subject of its newest commit."""

    on_done: Callable[[Done], None]
    on_refused: Callable[[ThreadId, str], None]


class FleetEnd(NamedTuple):
    """Where the threads stand when nothing can go on."""

    remote: str
    threads: dict[str, int]
    """How many have which status; branches count for themselves."""

    steps: int
    taken_over: int
    unpushed: int = 0
    """Threads of this store that could go on, and that the hub does not have."""

    refused: int = 0
    """Threads that have not ended, and of which it was told why they do not go on."""

    stopped: str = "idle"


def drive_hub(
    store: Store, caller: Caller, executor: Executor, request: FleetRequest, report: FleetReport
) -> FleetEnd:
    """Submit what can go on until nothing can."""
    return _Driver(store, caller, executor, request, report).run()


def _read_heads(store: Store) -> list[Head]:
    """Read the heads of all threads, without a look at each."""
    shared = read_shared(store)
    tips = {**shared.threads, **shared.archive}
    return [Head(ThreadId(name), oid, name in shared.archive) for name, oid in tips.items()]


def _thread_of(ref: str) -> ThreadId:
    return ThreadId(ref.rpartition("/")[2])


class _Driver:
    def __init__(
        self,
        store: Store,
        caller: Caller,
        executor: Executor,
        request: FleetRequest,
        report: FleetReport,
    ) -> None:
        self._store, self._caller, self._executor = store, caller, executor
        self._request, self._report = request, report
        self._remote = choose_remote(store.config, request.remote)
        self._hub = Hub(store, caller, self._remote)
        self._watch = Watch(request.job.ttl_s * _PATIENCE)
        self._named = [self._find_named(each) for each in request.threads]
        # No more wait than are at work: what has become needless can be left out.
        self._most = min(request.jobs, getattr(executor, "most", request.jobs))
        self._families = [Family(store, each) for each in self._named]
        self._seen: dict[str, Oid] = {}
        self._pending: dict[Future[Done], Runnable] = {}
        self._given_up: list[Future[Done]] = []
        self._rests: dict[ThreadId, Standing] = {}
        self._deaths: Counter[ThreadId] = Counter()
        self._lost: dict[ThreadId, Oid | None] = {}
        """The claims of runs whose workers have died, once they were seen."""

        self._not_before: dict[ThreadId, float] = {}
        self._apart: set[ThreadId] = set()
        """Those of which the hub has another history than this store, or none that can be taken."""

        self._refused: set[ThreadId] = set()
        self.steps = self.taken_over = 0

    def _find_named(self, text: str) -> ThreadId:
        thread = parse_thread_id(text)
        if thread is not None and find_head(self._store, thread) is None:
            fetched = fetch_remote(self._store, self._caller, self._remote.name, [thread])
            if any(each.thread == thread for each in fetched.of("refused")):
                # The first look tells it, and it holds up no other.
                return thread
        return resolve_thread(self._store, text)

    def run(self) -> FleetEnd:
        is_first = True
        while True:
            # Whose end was heard of before the look has pushed before it, too.
            self._hear()
            try:
                is_idle = not self._go_on()
            except RemoteFailed:
                if is_first:
                    raise
                is_idle = False
            is_first = False
            if is_idle and not self._request.follow:
                return self._end()
            until = time.monotonic() + self._request.job.poll_s
            while time.monotonic() < until and not any(each.done() for each in self._pending):
                time.sleep(0.05)

    def _hear(self) -> None:
        for future in [each for each in self._pending if each.done()]:
            task = self._pending.pop(future)
            try:
                done = future.result()
            except Exception as error:  # noqa: BLE001 (whatever an executor raises for a lost task)
                done = Done(task.thread, "", _LOST, said=f"{type(error).__name__}: {error}")
            self.steps += done.steps
            self._report.on_done(done)
            self._after(task, done.stopped)

    def _after(self, task: Runnable, stopped: str) -> None:
        """Note when the thread of *task* may be submitted again."""
        job, now = self._request.job, time.monotonic()
        self._refused.discard(task.thread)
        if stopped == _LOST:
            self._lost[task.thread] = None
        if stopped in {_LOST, *_NO_HUB}:
            self._deaths[task.thread] += 1
            if self._deaths[task.thread] < _MOST_DEATHS:
                self._not_before[task.thread] = now + (job.ttl_s if stopped in _NO_HUB else 0)
                return
        self._deaths.pop(task.thread, None)
        if stopped in _ELSEWHERE:
            self._not_before[task.thread] = now + job.poll_s
        elif stopped != "max-steps":
            # If the run changed nothing, another run would not either.
            self._rests[task.thread] = task.standing
            if stopped not in get_args(StoppedBy):
                self._refused.add(task.thread)

    def _go_on(self) -> bool:
        """Look at the hub and submit what can go on; return whether anything goes on, or will."""
        refs = self._look()
        mine = [each for each in _read_heads(self._store) if self._is_mine(each.thread, refs)]
        heads = {
            each.thread: each
            for each in mine
            if not each.archived and each.thread not in self._apart
        }
        claims = {each: oid for each, oid in list_claims(refs).items() if each in heads}
        dead = self._watch.find_dead(claims)
        self._drop_silent(dead)
        # The run that a worker's death has cut short may go on where it was.
        self._lost = {each: oid or claims.get(each) for each, oid in self._lost.items()}
        alive = {each for each, oid in claims.items() if self._lost.get(each) != oid} - dead.keys()
        will_go_on = bool(self._pending or alive)
        under_way = {task.thread for task in self._pending.values()}
        for head in heads.values():
            if len(self._pending) >= self._most:
                # Each head that is read takes a millisecond, at each look.
                break
            found = None if head.thread in under_way else self._find_new(head)
            if found is None or {found.thread, *found.around} & (alive - under_way):
                continue
            if found.refused:
                self._rests[head.thread] = found.standing
                if found.left != 0:
                    # A thread at its limit is where it was meant to stop.
                    self._refused.add(head.thread)
                self._report.on_refused(head.thread, found.refused)
                continue
            will_go_on = True
            if self._has_room(found):
                self._submit(found, dead)
        if not will_go_on and (ended := list_ended_claims(refs)):
            # A dead machine has left them on threads that have ended since.
            with suppress(RemoteFailed):
                self._hub.swap({each: ({oid}, None) for each, oid in ended.items()})
        return will_go_on or self._waits(heads)

    def _drop_silent(self, dead: Mapping[ThreadId, Oid]) -> None:
        """Forget tasks whose machine is silent: the executor may not know, or run them later."""
        silent: set[Future[Done]] = set()
        if hasattr(self._executor, "list_silent"):
            silent |= set(self._executor.list_silent(self._request.job.ttl_s))
        for future, task in list(self._pending.items()):
            is_dead = task.thread in dead and dead[task.thread] != task.over
            if is_dead or future in silent:
                debug("C4H7XK0P", "task given up", thread=task.thread)
                if not future.cancel():
                    self._given_up.append(future)
                del self._pending[future]

    def _find_new(self, head: Head) -> Runnable | None:
        """Return how a thread can go on that is not under way, and that does not rest."""
        found = None
        with self._guarded(head.thread):
            try:
                now_ms = self._caller.now_ms()
                found = find_runnable(self._store, head, self._request, now_ms=now_ms)
            except BranchHeld as held:
                # Who gave up the thread around may not have had this branch.
                sweep_held(self._store, self._caller, held)
        is_new = found is not None and self._rests.get(head.thread) != found.standing
        return found if is_new else None

    def _look(self) -> dict[str, Oid]:
        """Return the hub's refs; take over what moved there, and push what is ahead here."""
        refs, busy = self._hub.look(), set[ThreadId]()
        shared = {ref: oid for ref, oid in refs.items() if ref.startswith((ACTIVE, ARCHIVE))}
        if shared != self._seen:
            busy = self._fetch(shared, refs)
        self._begin_branches(refs)
        ahead = [
            head.thread
            for head in _read_heads(self._store)
            if self._is_mine(head.thread, refs)
            and head.thread not in self._apart
            and refs.get((ARCHIVE if head.archived else ACTIVE) + head.thread) != head.commit
        ]
        if ahead:
            push_remote(self._store, self._caller, self._remote.name, ahead)
        # Those that this store could not take are news again at the next look.
        self._seen = {ref: oid for ref, oid in shared.items() if _thread_of(ref) not in busy}
        return refs

    def _fetch(self, shared: dict[str, Oid], refs: dict[str, Oid]) -> set[ThreadId]:
        """Fetch, and tell what moved; return the threads that are busy here."""
        fetched = fetch_remote(self._store, self._caller, self._remote.name, self._named)
        self._apart = set()
        for each in (*fetched.of("diverged"), *fetched.of("refused")):
            is_thread = each.ref.startswith((ACTIVE, ARCHIVE))
            if is_thread and self._is_mine(each.thread, refs):
                self._apart.add(each.thread)
                self._refuse_once(each.thread, f"`uwf fetch {self._remote.name}` says why")
        for ref, oid in shared.items():
            thread = _thread_of(ref)
            if self._seen and self._seen.get(ref) != oid and self._is_mine(thread, refs):
                with suppress(UwfError):
                    self._report.on_moved(thread, read_snapshot(self._store, oid).subject)
        return {thread for thread, _error in fetched.busy}

    def _begin_branches(self, refs: dict[str, Oid]) -> None:
        """Begin the branches that nobody has begun: their first commits follow from the split."""
        for head in _read_heads(self._store):
            ref = ACTIVE + head.thread
            is_known = head.archived or self._seen.get(ref) == refs.get(ref)
            if is_known or not self._is_mine(head.thread, refs):
                continue
            with self._guarded(head.thread):
                tip = read_snapshot(self._store, head.commit)
                if any(each.head is None for each in list_branches(self._store, tip)):
                    list(list_leaves(self._store, tip))

    def _is_mine(self, thread: ThreadId, refs: dict[str, Oid]) -> bool:
        if self._families:
            return any(thread in each for each in self._families)
        if ACTIVE + thread in refs or ARCHIVE + thread in refs:
            return True
        trunk = None
        with self._guarded(thread):
            tip = find_tip(self._store, thread)
            trunk = None if tip is None else tip.get_trunk()
        return trunk is not None and self._is_mine(trunk, refs)

    def _has_room(self, found: Runnable) -> bool:
        if self._not_before.get(found.thread, 0) > time.monotonic():
            return False
        siblings = sum(task.root == found.root for task in self._pending.values())
        return found.left is None or siblings < found.left

    def _submit(self, found: Runnable, dead: Mapping[ThreadId, Oid]) -> None:
        over = dead.get(found.thread)
        job = self._request.job._replace(
            thread=found.thread,
            over=over or "",
            allowed=found.allowed,
            around=found.around,
            dead=tuple(dead[each] for each in found.around if each in dead),
            # Who shares a limit with siblings takes one step and is looked at anew.
            max_steps=self._request.job.max_steps if found.root is None else 1,
        )
        self.taken_over += over is not None
        try:
            future = self._executor.submit(run_thread, job)
        except RuntimeError as error:
            # As concurrent.futures has it: a worker was killed, or it was shut down.
            raise Refused(
                f"the executor takes no more tasks: {error}",
                code="executor-ended",
                hint="nothing was lost: `uwf drive` again goes on",
            ) from error
        self._pending[future] = found._replace(over=over)

    def _waits(self, heads: dict[ThreadId, Head]) -> bool:
        """Return whether a thread waits for the end of a usage limit, and this driver for it."""
        if not self._request.wait:
            return False
        # One that is over has let its thread go on, or something else keeps that from it.
        now_ms = self._caller.now_ms()
        for head in heads.values():
            with self._guarded(head.thread):
                tip = read_snapshot(self._store, head.commit)
                waiting = tip.get_present().waiting if tip.record.status == "waiting" else None
                if waiting is not None and (waiting.until or 0) > now_ms:
                    return True
        return False

    @contextmanager
    def _guarded(self, thread: ThreadId) -> Iterator[None]:
        """Tell an error of *thread* once, and let it hold up no other."""
        try:
            yield
        except UwfError as error:
            self._refuse_once(thread, error.message)

    def _refuse_once(self, thread: ThreadId, why: str) -> None:
        if thread not in self._refused:
            self._refused.add(thread)
            self._report.on_refused(thread, why)

    def _end(self) -> FleetEnd:
        statuses: Counter[str] = Counter()
        heads = _read_heads(self._store)
        # What the hub has and a fetch did not take over is not here.
        left = self._refused - {each.thread for each in heads}
        unpushed, refused = 0, sum(ACTIVE + each in self._seen for each in left)
        for head in heads:
            if self._is_mine(head.thread, self._seen):
                status = "damaged"
                with self._guarded(head.thread):
                    status = str(read_snapshot(self._store, head.commit).record.status)
                statuses[status] += 1
                refused += head.thread in self._refused and not head.archived
            elif not head.archived and not self._named:
                unpushed += 1
        ordered = dict(sorted(statuses.items()))
        # A silent machine may have gone on, and its steps count.
        wait(self._given_up, self._request.job.poll_s)
        late = [each for each in self._given_up if each.done() and each.exception() is None]
        steps = self.steps + sum(each.result().steps for each in late)
        return FleetEnd(self._remote.name, ordered, steps, self.taken_over, unpushed, refused)
