"""Whose turn it is in a thread, and the command that fits: what every stop of the program tells."""

import json
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from uwf_git.commands.family import BranchHeld, check_ancestors, list_branches, walk_descendants
from uwf_git.commands.split import find_container
from uwf_git.commands.turn.flow import (
    advise_change,
    count_own,
    decide_flow,
    find_limit,
    run_in_fork,
)
from uwf_git.debug_log import debug
from uwf_git.engine.flow_state import find_state_problem, is_verdict_due, list_largest
from uwf_git.engine.moderator import (
    LazyList,
    NotPlain,
    Position,
    StepSummary,
    build_context,
    check_role,
    expression,
    lazy_list,
    next_role,
    plainly_holds,
)
from uwf_git.errors import Refused, StoreDamaged, UwfError
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.builtin import START as START_NODE
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node
from uwf_git.model.thread import ENDED, ThreadState, Waiting
from uwf_git.model.workflow import END, Graph, Workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.history import (
    Snapshot,
    StepChain,
    get_flow,
    get_graph,
    get_role,
    get_typed,
    get_workflow,
    read_root,
    walk_history,
)

# The words for agents that many rooms need.

CONFIG_NAME = "uwf.agent"
"""The setting with the agent of roles that have none."""

PERSON = "human"
"""The command of a role that a person plays."""

FUNCTION = "python:"
"""What the command of a role that a Python function plays begins with."""

KEPT_PROGRAMS = frozenset({PERSON, "uwf-human", "uwf-shell", "uwf-check"})
"""The programs that a command for every role leaves: of people, and of checks of others' work."""


def settings_by_role(agents: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what AgentConfig payloads have besides the command; roles without any are absent."""
    settings = {
        role: {name: value for name, value in agent.items() if name != "command"}
        for role, agent in agents.items()
    }
    return {role: each for role, each in settings.items() if each}


# Decide whose turn it is: run the moderator; conditions that are not plain in a limited fork.
#
# The same commit gives the same answer. Only the steps are read that a condition looks at.


class NextTurn(NamedTuple):
    role: str
    """A role of the workflow, or ``$END``."""

    at: str | None = None
    """The place of the turn; None in a graph, but for a role that splits it."""

    splits: bool = False
    """The thread goes on in branches: *role* is the label of what splits it."""


def decide_next(snapshot: Snapshot, present: ThreadState, workflow: Workflow) -> NextTurn:
    # Read the head even if no condition needs it: a damaged thread must not go on.
    head = snapshot.get_head_node()
    if workflow.flow is not None:
        return _decide_flow(snapshot, present, workflow.flow)
    graph = get_graph(snapshot, workflow.get_moderator())
    try:
        try:
            role = _ask_plainly(graph, snapshot, present, head)
        except NotPlain:
            role = _ask_conditions(graph, snapshot, present, head)
        check_role(role, workflow.roles)
    except Refused as error:
        # A thread keeps its workflow, so putting the file again does not help it.
        error.hint = "; ".join(filter(None, (error.hint, advise_change(snapshot))))
        raise
    debug("0TYDCYW5", "decided", thread=snapshot.record.thread, after=present.role, role=role)
    splits = role != END and get_role(snapshot, workflow.roles[role]).workflow is not None
    return NextTurn(role, role if splits else None, splits)


def _decide_flow(snapshot: Snapshot, present: ThreadState, name: NodeHash) -> NextTurn:
    move = decide_flow(snapshot, present, get_flow(snapshot, name))
    debug(
        "4N2W0SHC", "place decided", thread=snapshot.record.thread, at=present.at, next=str(move.at)
    )
    if move.node is None:
        return NextTurn(END)
    # A join may have made it: no agent is paid for a result that cannot be stored.
    if (problem := find_state_problem(present.state)) is not None:
        thread = snapshot.record.thread
        patch = json.dumps(dict.fromkeys(list_largest(present.state) or ["KEY"]))
        raise Refused(
            f"thread {thread} cannot go on: {problem}",
            code="state-too-large",
            hint=f"`uwf thread patch {thread} {shlex.quote(patch)}` removes what is largest",
            thread=thread,
        )
    if move.kind == "split":
        return NextTurn(move.node.label, str(move.at), splits=True)
    is_verdict = is_verdict_due(move.node, present.tried, str(move.at))
    return NextTurn(move.node.find_role(is_verdict=is_verdict), str(move.at))


def _ask_plainly(graph: Graph, snapshot: Snapshot, present: ThreadState, head: Node) -> str:
    # Most positions ask no condition.
    position = cache(lambda: _position(snapshot, present, head))

    def holds(condition: str) -> bool:
        context = build_context(position(), lambda: _build_history(present.depth - 1, []))
        return plainly_holds(condition, context)

    return next_role(graph, present.role, holds)


def _ask_conditions(graph: Graph, snapshot: Snapshot, present: ThreadState, head: Node) -> str:
    # JSONata costs 40 ms of start-up and a fork 6 ms: only for what is not plain.
    holds, chain, known = expression.evaluate_condition, StepChain(snapshot), list[StepSummary]()
    position = _position(snapshot, present, head)
    context = build_context(position, lambda: _build_history(present.depth - 1, known))

    def decide() -> str:
        return next_role(graph, present.role, lambda text: holds(text, context))

    # Read outside the fork: its limits are for the condition, not for a long history.
    while True:
        try:
            return str(run_in_fork(decide, what=f"the decision after {present.role}"))
        except UwfError as error:
            if error.code != _HISTORY_NEEDED:
                raise
            needed = error.facts["newest"]
        # Twice as many as before, at least: each time costs a fork.
        wanted = min(max(needed, 2 * len(known)), present.depth - 1)
        debug("PS45NV7E", "a condition reads the history", steps=wanted)
        for back in range(len(known) + 1, wanted + 1):
            step = chain.get(present.depth - 1 - back).payload
            known.append(StepSummary(step["role"], step["meta"]))


# Raised in the limited fork, and never shown.
_HISTORY_NEEDED = "history-needed"


def _build_history(length: int, known: list[StepSummary]) -> LazyList[StepSummary]:
    """Return the steps before the newest, oldest first; *known* are the newest of them."""

    def read(place: int) -> StepSummary:
        back = length - place
        if back > len(known):
            raise Refused("a condition reads the history", code=_HISTORY_NEEDED, newest=back)
        return known[back - 1]

    return lazy_list(length, read)


def _position(snapshot: Snapshot, present: ThreadState, head: Node) -> Position:
    return Position(
        role=present.role,
        meta={} if head.type == START_NODE else head.payload["meta"],
        depth=present.depth,
        state=present.state,
        prompt=snapshot.get_start().payload["prompt"],
        iteration=count_own(snapshot, present).get(present.role, 0),
        start_time_ms=present.started_at,
    )


_ENDS = "ends it"


class NextMove(NamedTuple):
    role: str | None = None
    """The role that takes the next step, or ``$END``; None: ended, or see ``problem``."""

    problem: UwfError | None = None
    """Why the next role cannot be decided."""

    splits: bool = False
    """The thread goes on in branches: *role* names what splits it."""

    at: str | None = None
    """The place of that turn or split in a flow; in a graph the role that splits it, or None."""

    @property
    def turn_of(self) -> str | None:
        """The role whose turn it is; None if no role is left."""
        return None if self.role == END else self.role

    def has_turn(self, status: str) -> bool:
        """Return whether a thread with *status* has a turn to begin or answer."""
        # Who waits or has failed has a turn, also where nobody has decided the move.
        return self.turn_of is not None or status != "ready"

    def may_be_held(self, snapshot: Snapshot) -> bool:
        """Return whether a problem, a limit or a thread around it may keep it from this move."""
        status = snapshot.record.status
        is_limited = bool(snapshot.get_present().limits) and self.has_turn(status)
        is_branch = snapshot.record.parent_thread is not None
        may_be = is_limited or is_branch or self.problem is not None
        return status in {"ready", "waiting", "failed"} and may_be


class Advice(NamedTuple):
    text: str
    """One line, with the commands between backticks."""

    is_usual: bool = False
    """True if the thread just goes on, or has ended; False if it needs a person."""


class Steered(NamedTuple):
    by: str
    """``name <email>``"""

    reason: str


def find_next_move(snapshot: Snapshot) -> NextMove:
    if snapshot.record.status in ENDED:
        return NextMove()
    present = snapshot.get_present()
    if present.waiting is not None:
        return NextMove(present.waiting.role, at=present.waiting.at)
    if present.split is not None:
        at = present.split.at
        return NextMove(find_container(snapshot, at).label, splits=True, at=at)
    try:
        turn = decide_next(snapshot, present, get_workflow(snapshot, present.workflow))
        return NextMove(turn.role, splits=turn.splits, at=turn.at)
    except UwfError as problem:
        return NextMove(None, problem)


def find_steered(store: Store, snapshot: Snapshot) -> Steered | None:
    event = {"killed": "kill", "paused": "pause"}.get(snapshot.record.status)
    # A step that was under way, or a patch, may follow the pause.
    history = () if event is None else walk_history(store, snapshot.commit.oid)
    at = next((each for each in history if each.record.event == event), None)
    return None if at is None else Steered(at.commit.author.decode(errors="replace"), at.body)


def advise(
    store: Store, snapshot: Snapshot, move: NextMove, *, default: str | None = None
) -> Advice:
    """Return which command fits the thread now; *default* is the agent of unbound roles."""
    thread, status = snapshot.record.thread, snapshot.record.status
    if status in ENDED:
        told = {
            "completed": f"`uwf thread read {thread}` shows all of it",
            "killed": f"`uwf thread fork {thread}` continues it in a new thread",
        }
        return Advice(told[status], is_usual=True)
    try:
        if snapshot.record.parent_thread is not None:
            check_ancestors(store, snapshot)
    except BranchHeld as held:
        return _tell_problem(held)
    present = snapshot.get_present()
    if status == "paused":
        return Advice(_after_pause(store, snapshot, move))
    if status == "split":
        return _when_split(store, snapshot)
    if move.has_turn(status) and (limit := _find_limit(store, snapshot)) is not None:
        return _tell_problem(limit)
    if status == "failed":
        return Advice(
            f"`uwf thread retry {thread}` lets a run go on, and with -m tells the agent something; "
            f"`uwf thread step {thread}` tries once more"
        )
    if status == "waiting" and present.waiting is not None:
        return Advice(_wait(thread, present.waiting))
    return _when_ready(store, snapshot, move, default or store.config.get(CONFIG_NAME))


def _when_split(store: Store, snapshot: Snapshot) -> Advice:
    try:
        return _choose_for_split(store, snapshot)
    except StoreDamaged as damage:
        # What is known of the others helps little: no step or join passes it.
        return _tell_problem(damage)


def _choose_for_split(store: Store, snapshot: Snapshot) -> Advice:
    thread = snapshot.record.thread
    below = [branch for head, branch in walk_descendants(store, snapshot) if not head.archived]
    trunks = [each for each in below if each.record.status == "split"]
    has_new = any(
        branch.head is None
        for trunk in [snapshot, *trunks]
        for branch in list_branches(store, trunk)
    )
    leaves = [each for each in below if each.record.status != "split"]
    problem = _find_problem(store, [snapshot, *trunks], is_at_end=not (leaves or has_new))
    if problem is not None:
        return _tell_problem(problem)
    if failed := sum(branch.record.status == "failed" for branch in below):
        told = "a branch has failed" if failed == 1 else f"{failed} branches have failed"
        return Advice(
            f"{told}: `uwf thread retry {thread}` lets a run go on, then `uwf thread run {thread}`"
        )
    held = [each for each in leaves if each.record.status in {"waiting", "paused"}]
    if held and len(held) == len(leaves) and not has_new:
        return Advice(_when_held(store, thread, held))
    return Advice(
        f"its branches go on: `uwf thread run {thread}` drives all of them, "
        f"`uwf thread step {thread}` steps each once",
        is_usual=True,
    )


def _find_problem(store: Store, split: Sequence[Snapshot], *, is_at_end: bool) -> UwfError | None:
    """Return what holds up threads that have *split*, the outermost first: a join, or a limit."""
    problems = (find_join_problem(store, each) for each in split)
    problem = next((each for each in problems if each is not None), None)
    return problem if problem is not None or is_at_end else _find_limit(store, split[0])


def find_join_problem(store: Store, tip: Snapshot) -> UwfError | None:
    """Return why ended branches of the thread at *tip* cannot be joined, or None."""
    if tip.record.status != "split":
        return None
    from uwf_git.commands.turn.branches import find_problem_of_join  # noqa: PLC0415 (few threads split)

    return find_problem_of_join(store, tip)


def _find_limit(store: Store, snapshot: Snapshot) -> UwfError | None:
    """Return the limit that lets a thread begin no step, or why what was spent is not known."""
    try:
        return find_limit(store, snapshot)
    except StoreDamaged as damage:
        return damage


def _tell_problem(problem: UwfError) -> Advice:
    return Advice("; ".join(each for each in (problem.message, problem.hint) if each))


def _when_held(store: Store, thread: ThreadId, held: Sequence[Snapshot]) -> str:
    """Return what to type when all that is left of the branches of *thread* needs somebody."""
    first = held[0]
    branch, present = first.record.thread, first.get_present()
    waiting = None if first.record.status == "paused" else present.waiting
    if waiting is None:
        told = f"branch {branch} is paused: {_after_pause(store, first, NextMove())}"
    elif waiting.until is None:
        told = f"branch {branch} waits for {waiting.role}: {_wait(branch, waiting)}"
    else:
        told = f"branch {branch} waits for the end of a limit: {_wait(branch, waiting, run=thread)}"
    more = len(held) - 1
    return told + (f"; {more} more {'waits' if more == 1 else 'wait'}" if more else "")


def _wait(thread: ThreadId, waiting: Waiting, *, run: ThreadId | None = None) -> str:
    """Return how a wait of *thread* ends; *run* is the thread around it that is driven."""
    if waiting.until is None:
        return (
            f"`uwf thread answer {thread}` asks and records the answer; to have an agent play it: "
            f"`uwf thread amend {thread} --agent {shlex.quote(f'{waiting.role}=CMD')}`"
        )
    return (
        f"`uwf thread run {run or thread} --wait` sleeps until then; "
        f"`uwf thread resume {thread}` lets it try now"
    )


def _after_pause(store: Store, snapshot: Snapshot, move: NextMove) -> str:
    thread, present = snapshot.record.thread, snapshot.get_present()
    resume, before = f"`uwf thread resume {thread}` lets it go on", str(present.paused_from)
    if before == "split":
        split = _when_split(store, snapshot)
        if not split.is_usual:
            return f"{resume}; {split.text}"
    elif move.has_turn(before) and (limit := _find_limit(store, snapshot)) is not None:
        return f"{resume}; {_tell_problem(limit).text}"
    then = {
        "failed": f"`uwf thread retry {thread}`",
        "waiting": f"`uwf thread answer {thread}`",
    }.get(before, f"`uwf thread run {thread}`")
    if present.waiting is not None and present.waiting.until is not None:
        then = f"`uwf thread run {thread} --wait`"
    return f"{resume}, then {then}"


def _when_ready(store: Store, snapshot: Snapshot, move: NextMove, default: str | None) -> Advice:
    thread = snapshot.record.thread
    if move.problem is not None:
        return _tell_problem(move.problem)
    role = move.turn_of
    if role is None:
        return _go_on(store, snapshot, "no role is left", _ENDS)
    if move.splits:
        return _go_on(store, snapshot, f"{role} comes next, in branches", "begins them")
    binding = snapshot.get_present().binding
    agent = get_typed(snapshot, binding[role], AGENT_CONFIG).payload if role in binding else {}
    command = agent.get("command") or default
    if not command:
        return Advice(
            f"no agent is bound to {role}: "
            f"`uwf thread amend {thread} --agent {shlex.quote(f'{role}=CMD')}`, then "
            f"`uwf thread run {thread}`"
        )
    if command.strip() == PERSON:
        return Advice(_wait(thread, Waiting(role)))
    return _go_on(store, snapshot, f"it is the turn of {role}", "takes one step")


def _go_on(store: Store, snapshot: Snapshot, told: str, then: str) -> Advice:
    """Return how a ready thread goes on: the whole is driven; *then* is what a step does."""
    thread, root = snapshot.record.thread, read_root(store, snapshot)
    run = "" if then == _ENDS else f"`uwf thread run {thread}` continues, "
    if root is not snapshot:
        outermost = root.record.thread
        run = f"`uwf thread run {outermost}` drives this branch and all others of its thread, "
    return Advice(f"{told}: {run}`uwf thread step {thread}` {then}", is_usual=True)
