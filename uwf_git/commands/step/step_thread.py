"""`uwf thread step`: take one step: lock, read, decide, play, record, unlock.

Before the ref moves nothing has happened; after it everything has. Source: seed 000 section 1.3.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.agents.command_line import agent_name
from uwf_git.agents.group import run_at_once
from uwf_git.commands.agent_run.runs import PlayedElsewhere
from uwf_git.commands.caller import Caller
from uwf_git.commands.family import (
    Branch,
    BranchHeld,
    Strangers,
    check_ancestors,
    find_ends,
    find_isolation,
    list_branches,
    strange_branch,
    walk_descendants,
)
from uwf_git.commands.inspect.show import view_failure
from uwf_git.commands.split import (
    Derived,
    draft_join,
    draft_split,
    find_container,
    find_split,
    plan_split,
    read_split,
)
from uwf_git.commands.step.ending import (
    end_by_kill,
    end_thread,
    fast_forward_from_tracking,
    find_begun_turn,
    finish_kill,
    keep_overtaken_work,
    play_recorded,
    play_turn,
    prepare_turn,
    record_before_wait,
    record_branches,
    refuse_inputs,
    sweep_worktrees_of,
    with_files,
)
from uwf_git.commands.step.record_turn import (
    TurnFailed,
    TurnInterrupted,
    record_turn,
    wait_for_person,
)
from uwf_git.commands.turn.branches import (
    ThreadNotActive,
    ThreadNotReady,
    begin_branch,
    begin_in,
    check_result,
    choose_place,
    find_source,
    is_steppable,
    plan_join,
    read_active,
    share_workdir,
)
from uwf_git.commands.turn.choose_agent import (
    Choice,
    check_next,
    check_roles,
    choose_agent,
    choose_checks,
    is_person,
)
from uwf_git.commands.turn.flow import ask_container, check_limits, find_steps_left, read_spending
from uwf_git.commands.turn.next_move import NextTurn, decide_next, find_next_move
from uwf_git.commands.turn.turn import (
    Player,
    ThreadResult,
    build_thread_result,
    existing_directory,
    read_thread_result,
)
from uwf_git.commands.worktree.worktrees import note_origin
from uwf_git.debug_log import debug
from uwf_git.errors import AgentFailed, Conflict, Refused, UwfError
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.names import ThreadId
from uwf_git.model.node import Node
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import END, describe_check
from uwf_git.store.locks import LockingUnsupported
from uwf_git.store.packing import has_many_packs
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, HeadMoved, advance_head, find_head, get_head
from uwf_git.store.threads.history import (
    Snapshot,
    find_tip,
    get_role,
    get_typed,
    get_workflow,
    read_snapshot,
    walk_trunks,
)
from uwf_git.store.threads.local_files import (
    ThreadBusy,
    check_not_stopped,
    find_driver,
    has_lock_file,
    is_being_stopped,
    lock_thread,
)
from uwf_git.store.threads.naming import parse_thread_id
from uwf_git.store.tidy import unite_packs
from uwf_git.store.trust import keep_trusted, trust_agents

# Branches of a thread as its steps see them: settle what holds them, end them, join them.

_MOST_TRIES = 1000


def sweep_branches(store: Store, caller: Caller, tip: Snapshot, *, reason: str) -> bool:
    """End the branches below the killed thread at *tip*; return whether there were any."""
    below = [head for head, _ in walk_descendants(store, tip)]
    found = [head.thread for head in below if not head.archived]
    elsewhere: PlayedElsewhere | None = None
    for thread in found:
        try:
            end_by_kill(store, caller, thread, reason=reason)
        except PlayedElsewhere as error:
            elsewhere = error
        except (ThreadNotActive, ThreadBusy):
            # It has ended by itself, or another process ends it.
            if not get_head(store, thread).archived and not is_being_stopped(store, thread):
                raise
    sweep_worktrees_of(store, caller, tip.record.thread, *(head.thread for head in below))
    if elsewhere is not None:
        raise elsewhere
    return bool(found)


def sweep_held(store: Store, caller: Caller, held: BranchHeld) -> None:
    """End what a killed thread left of its branches, if that *held* a branch of it."""
    parent = find_tip(store, held.facts["parent"])
    if parent is None:
        return
    around = [parent, *walk_trunks(store, parent)]
    killed = [each for each in around if each.record.status == "killed"]
    for tip in killed[-1:]:
        sweep_branches(store, caller, tip, reason=tip.body)


def settle_branches(
    store: Store, caller: Caller, thread: ThreadId, *, may_have_failed: bool = True
) -> bool:
    """End the branches of *thread* that its policies give up; return whether any was ended.

    With ``onError: continue`` failed branches, as many as it tolerates; with ``join: any`` all
    others when one has completed. A branch that has split has failed if a branch of its own has and
    its policies do not give that up. *may_have_failed* saves looking.
    """
    tip = read_snapshot(store, get_head(store, thread).commit)
    found = tip.get_present().split
    if tip.record.status != "split" or found is None:
        return False
    policy = find_container(tip, found.at).policy
    gives_up = policy.get("onError") == "continue" and may_have_failed
    is_race = policy.get("join") == "any"
    if not (is_race or gives_up):
        return False
    branches = list_branches(store, tip)
    statuses = [_read_status(store, each) for each in branches]
    given_up: list[tuple[Branch, str]] = []
    if is_race and "completed" in statuses:
        given_up = [(each, "another branch was first") for each in branches if not each.has_ended]
    elif gives_up:
        errors = [(each, _find_last_error(store, caller, each)) for each in branches]
        most = int(policy.get("tolerate", len(branches))) - statuses.count("killed")
        given_up = [(each, error) for each, error in errors if error is not None][: max(0, most)]
    for branch, reason in given_up:
        _end_branch(store, caller, tip, branch, reason=reason)
    return bool(given_up)


def _read_status(store: Store, branch: Branch) -> str:
    if branch.head is None:
        return "ready"
    return read_snapshot(store, branch.head.commit).record.status


def _end_branch(
    store: Store, caller: Caller, tip: Snapshot, branch: Branch, *, reason: str
) -> None:
    """End *branch* of *tip*, begun or not, and all below it."""
    thread = branch.child.thread
    if find_head(store, thread) is None:
        begin_branch(store, tip, branch.number)
    # It may end by itself meanwhile.
    with suppress(ThreadNotActive):
        end_by_kill(store, caller, thread, reason=reason)
    ended = read_snapshot(store, get_head(store, thread).commit)
    sweep_branches(store, caller, ended, reason=reason)


def _find_last_error(store: Store, caller: Caller, branch: Branch) -> str | None:
    """Return why a branch has failed, by itself or by one below; None if it has not."""
    if branch.head is None or branch.has_ended:
        return None
    snapshot = read_snapshot(store, branch.head.commit)
    if snapshot.record.status == "failed":
        failure = view_failure(snapshot, snapshot.get_present())
        return "it failed" if failure is None else str(failure["message"])
    if snapshot.record.status != "split":
        return None
    # First what it gives up itself: that is no failure.
    settle_branches(store, caller, branch.child.thread)
    errors = (_find_last_error(store, caller, each) for each in list_branches(store, snapshot))
    return next((error for error in errors if error is not None), None)


def join_branches(store: Store, caller: Caller, thread: ThreadId) -> ThreadResult | None:
    """Join the branches of *thread* if all have ended; else return None."""
    with lock_thread(store, thread, since_ms=caller.now_ms()):
        for _ in range(_MOST_TRIES):
            # A pause or a patch takes no lock and may come in between.
            with suppress(HeadMoved):
                return _join(store, caller, thread)
        raise HeadMoved(thread)


def _join(store: Store, caller: Caller, thread: ThreadId) -> ThreadResult | None:
    head = find_head(store, thread)
    if head is None or head.archived:
        return None
    tip = read_snapshot(store, head.commit)
    heads = find_ends(store, tip)
    if heads is None:
        return None
    ends = {each.thread: [each.commit] for each in heads}
    stranger = Strangers(store.objects, ends.__getitem__).find_below(head.commit)
    if stranger is not None:
        raise strange_branch(stranger)
    sweep_worktrees_of(store, caller, thread)
    tips = [read_snapshot(store, each.commit) for each in heads]
    for each in tips:
        # The killed process had ended the branch, and not yet the branches below it.
        if each.record.status == "killed":
            sweep_branches(store, caller, each, reason=each.body)
    joined = draft_join(tip, tips, plan_join(tip, tips))
    if not tips or find_isolation(tips[0]) is None:
        record_branches(store, caller, tip)
    return _record(store, head, joined)


def _record(store: Store, head: Head, derived: Derived) -> ThreadResult:
    commit = derived.write(store)
    advance_head(store, head, commit)
    return build_thread_result(derived.new.record, said=derived.new.said, commit=commit)


# Split a thread into branches, and step these: the part of a step that plays no agent itself.

_AT_REST = (BranchHeld, ThreadNotActive, ThreadNotReady)


class BranchStep(NamedTuple):
    thread: ThreadId
    result: ThreadResult | None
    """The branch after it; None if it did not go on."""

    error: UwfError | None = None


def split_thread(
    store: Store, caller: Caller, seen: tuple[Head, Snapshot], turn: NextTurn, *, named: str | None
) -> ThreadResult:
    """Record, under its lock, that the thread splits; *named* is the step's work directory."""
    head, snapshot = seen
    container = find_container(snapshot, turn.at or "")
    asked = ask_container(snapshot, snapshot.get_present(), container)
    if container.policy.get("isolation"):
        source = choose_place(store, caller, snapshot, named=named)
        note_origin(store, caller.environ, head.thread, at=container.at, source=source)
    else:
        record_branches(store, caller, snapshot, named=named)
    return _record(store, head, draft_split(snapshot, plan_split(snapshot, container, asked)))


def list_leaves(store: Store, tip: Snapshot) -> Iterator[ThreadId]:
    """Begin the branches below *tip* that have not begun, and list those that take steps.

    A branch that has split itself joins its own branches first.
    """
    branches = [each for each in list_branches(store, tip) if not each.has_ended]
    new = [each for each in branches if each.head is None]
    if new:
        # The plan of a split is as long as it has branches: make it once.
        found = read_split(find_split(tip))
        for each in new:
            begin_in(store, found, each.number)
            _unite(store)
    for thread in [each.child.thread for each in branches]:
        # It may have been fetched, and have none here.
        share_workdir(store, tip.record.thread, thread)
        inner = read_snapshot(store, get_head(store, thread).commit)
        below = list(list_leaves(store, inner)) if inner.record.status == "split" else []
        yield from below
        if not below and not get_head(store, thread).archived:
            yield thread


def check_branches(stepped: ThreadResult) -> None:
    """Raise why a branch did not go on: failed agents first, waiting is no failure."""
    errors = [each.error for each in stepped.branches if each.error is not None]
    for kind in (AgentFailed, Conflict, UwfError):
        for error in errors:
            if isinstance(error, kind) and not isinstance(error, _AT_REST):
                raise error


def _unite(store: Store) -> None:
    """Unite small packs if that is due: each branch writes some, and all read them."""
    # On an error whoever follows tries again.
    with suppress(OSError, LockingUnsupported):
        if has_many_packs(store.path):
            unite_packs(store)


def list_trunks(store: Store, tip: Snapshot) -> Iterator[ThreadId]:
    """List the threads from *tip* down that have split and not joined, the deepest first."""
    if tip.record.status != "split":
        return
    for branch in list_branches(store, tip):
        if branch.head is not None and not branch.has_ended:
            yield from list_trunks(store, read_snapshot(store, branch.head.commit))
    yield tip.record.thread


class StepRequest(NamedTuple):
    thread: str
    """A thread id or a unique prefix of an id."""

    play: Player
    choice: Choice = Choice()
    workdir: str | None = None
    """Where agents run from now on; needed once for a thread that came from elsewhere."""

    jobs: int = 4
    """How many branches of a thread that has split are stepped at once."""

    is_driven: bool = False
    """The caller drives the thread; False refuses a thread that another process drives."""


def step_thread(store: Store, caller: Caller, request: StepRequest) -> ThreadResult:
    thread = parse_thread_id(request.thread)
    # Read first, so that an ended thread gets no lock file.
    if thread is None or not has_lock_file(store, thread):
        thread = read_active(store, request.thread)[0].thread
    if finish_kill(store, caller, thread):
        read_active(store, thread)
    try:
        taken = _take_step(store, caller, request, thread)
    except BranchHeld as held:
        if not request.is_driven:
            sweep_held(store, caller, held)
        raise
    finally:
        # The agent may have killed its own thread, and the killer with it. If that cannot be
        # finished now, the next step tells why.
        with suppress(UwfError):
            finish_kill(store, caller, thread)
    return taken or _step_branches(store, caller, request, thread)


def _take_step(
    store: Store, caller: Caller, request: StepRequest, thread: ThreadId
) -> ThreadResult | None:
    with lock_thread(store, thread, since_ms=caller.now_ms()) as lock:
        check_not_stopped(store, thread)
        driver = None if request.is_driven else find_driver(store, thread)
        if driver is not None:
            raise ThreadBusy(thread, driver)
        fast_forward_from_tracking(store, thread)
        seen = read_active(store, thread)
        head, snapshot = seen
        check_ancestors(store, snapshot)
        if snapshot.record.status == "split":
            return None
        keep_overtaken_work(store, caller, seen, request.play)
        present = snapshot.get_present()
        if not is_steppable(snapshot, present, now_ms=caller.now_ms(), is_driven=request.is_driven):
            raise ThreadNotReady(store, snapshot)
        begun = find_begun_turn(store, caller, snapshot, choice=request.choice)
        if begun is not None:
            # What steered the thread since it began does not undo it.
            lock.say(begun.role, agent_name(begun.agent.payload["command"]))
            played = with_files(begun, play_turn(begun, request.play))
            return record_turn(caller, head, begun, played)
        named = request.workdir
        workflow = get_workflow(snapshot, present.workflow)
        following = decide_next(snapshot, present, workflow)
        if not (request.is_driven or request.choice.others):
            check_next(thread, workflow, request.choice.agents, following=(following.role,))
        if following.role == END:
            check_result(store, snapshot)
            return end_thread(store, caller, seen, event="end")._replace(said="completed")
        if following.splits:
            return split_thread(store, caller, seen, following, named=named)
        spending = read_spending(store, snapshot, present)
        check_limits(spending.thread, spending.present)
        asked, role = request.choice._replace(workdir=named), following.role
        where, agent, checks = choose_players(store, caller, (snapshot, present), asked, role=role)
        if is_person(agent):
            record_before_wait(store, caller, snapshot, following, agent)
            return wait_for_person(store, caller, seen, turn=following)
        _trust_players(store, request, (snapshot, present), where, [agent.payload, *checks])
        workdir = choose_place(store, caller, snapshot, named=named)
        caller.check_signing(store)
        # Reads settings: a bad one must fail before the agent runs.
        turn = prepare_turn(
            store, caller, (snapshot, present), following, spending, agent=agent, workdir=workdir
        )
        lock.say(turn.role, agent_name(agent.payload["command"]))
        played = refuse_inputs(turn) or play_recorded(turn, request.play)
        debug("9KYP4NAD", "turn played", thread=thread, role=turn.role, error=played.error)
        return record_turn(caller, head, turn, played)


def _trust_players(
    store: Store,
    request: StepRequest,
    seen: tuple[Snapshot, ThreadState],
    where: str | None,
    players: list[dict[str, Any]],
) -> None:
    """Trust what plays the step if that is asked, and in a new place all that may run there."""
    # Trusted even if the work directory is missing: the user gives the two one by one.
    if request.choice.trust:
        trust_agents(store, players, where)
    if request.workdir is not None and where is not None:
        snapshot, present = seen
        names = get_workflow(snapshot, present.workflow).roles.values()
        checks = [check for name in names for check in get_role(snapshot, name).checks]
        bound = [
            get_typed(snapshot, each, AGENT_CONFIG).payload for each in present.binding.values()
        ]
        keep_trusted(store, [*bound, *map(describe_check, checks)], where)


def choose_players(
    store: Store,
    caller: Caller,
    seen: tuple[Snapshot, ThreadState],
    choice: Choice,
    *,
    role: str,
) -> tuple[str | None, Node, list[dict[str, Any]]]:
    """Return where *role* plays, by which agent, and its checks, or refuse what may not run here.

    The work directory of *choice* is as it was typed. Nothing is written.
    """
    snapshot, present = seen
    named = choice.workdir
    where = find_source(store, snapshot) if named is None else existing_directory(named, caller.cwd)
    choice = choice._replace(workdir=where)
    agent = choose_agent(store, snapshot, present, role=role, choice=choice)
    if is_person(agent):
        return where, agent, []
    return where, agent, choose_checks(store, snapshot, present, role=role, choice=choice)


def _step_branches(
    store: Store, caller: Caller, request: StepRequest, thread: ThreadId
) -> ThreadResult:
    """Step each branch below *thread* once, and join what has ended.

    Return the thread, with what each branch did in ``branches``, and what kept threads from
    joining.
    """
    # Its lock is not held while its branches take steps.
    tip = read_active(store, thread)[1]
    if request.workdir is not None:
        # Its branches take it over, and so does it when they are joined.
        choose_place(store, caller, tip, named=request.workdir)

    choice = request.choice
    if choice.agents and not request.is_driven:
        choice = choice._replace(others=check_roles(tip, None, choice.agents))
        played = get_workflow(tip, tip.record.workflow)
        played = played._replace(roles=dict.fromkeys(choice.others, tip.record.workflow))
        check_next(thread, played, choice.agents, following=list(_list_following(store, tip)))
    told = _step_all(store, caller, tip, request._replace(choice=choice))
    joined: ThreadResult | None = None
    now = read_snapshot(store, get_head(store, thread).commit)
    for trunk in list(list_trunks(store, now)):
        try:
            settle_branches(store, caller, trunk)
            found = join_branches(store, caller, trunk)
            joined = found if trunk == thread else joined
        except (Refused, Conflict) as error:
            told.append(BranchStep(trunk, None, error))
    for each in told:
        if isinstance(each.error, TurnFailed) and get_head(store, each.thread).archived:
            each.error.hint = (
                f"branch {each.thread} has ended: `uwf thread step {thread}` goes on without that "
                f"branch; `uwf thread read {thread}` has the agent's output"
            )
    if joined is None:
        joined = read_thread_result(read_snapshot(store, get_head(store, thread).commit))
    return joined._replace(branches=tuple(told))


def _list_following(store: Store, tip: Snapshot) -> Iterator[str]:
    """List the roles whose turn it is in the branches below *tip*."""
    for leaf in list_leaves(store, tip):
        snapshot = read_snapshot(store, get_head(store, leaf).commit)
        role = find_next_move(snapshot).role
        if role is not None and snapshot.record.status in {"ready", "waiting"}:
            yield role


def _step_all(
    store: Store, caller: Caller, tip: Snapshot, request: StepRequest
) -> list[BranchStep]:
    """Step each branch below *tip* once, as *request* asks; raise Ctrl-C before an agent began.

    No more of them at once than the thread may still take steps.
    """
    told: list[BranchStep] = []
    interrupted: list[TurnInterrupted] = []
    broken: list[OSError] = []

    def take(thread: ThreadId) -> BranchStep:
        try:
            return BranchStep(thread, step_thread(store, caller, request._replace(thread=thread)))
        except UwfError as error:
            if isinstance(error, TurnInterrupted):
                interrupted.append(error)
            return BranchStep(thread, None, error)
        except OSError as error:
            # As of a full disk: raised once the agents of the others have ended.
            broken.append(error)
            return BranchStep(thread, None)
        finally:
            _unite(store)

    try:
        leaves = list(list_leaves(store, tip))
        while len(told) < len(leaves):
            left = find_steps_left(store, tip.record.thread)
            # At the limit, each of the others tells of it.
            end = None if left is None or left <= 0 else len(told) + left
            told += run_at_once(take, leaves[len(told) : end], jobs=request.jobs)
            if broken:
                raise broken[0]
    except KeyboardInterrupt:
        if not interrupted:
            raise
        # It says more, and what to type is said of the thread that was named.
        again = f"`uwf thread step {tip.record.thread}` tries again"
        interrupted[0].hint = f"{interrupted[0].saved}: {again}"
        raise interrupted[0] from None
    return told
