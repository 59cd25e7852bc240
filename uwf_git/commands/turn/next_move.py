"""Whose turn it is in a thread, and the command that fits: what every stop of the program tells."""

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from uwf_git.commands.turn.agent_words import CONFIG_NAME, PERSON
from uwf_git.commands.turn.decide import decide_next
from uwf_git.commands.turn.limits import find_limit
from uwf_git.errors import StoreDamaged, UwfError
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ENDED, ThreadState, Waiting
from uwf_git.model.workflow import END
from uwf_git.store.store import Store
from uwf_git.store.threads.definitions import get_workflow
from uwf_git.store.threads.history import read_root, walk_history
from uwf_git.store.threads.snapshot import Snapshot, get_typed

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
        from uwf_git.commands.split.commits import find_container  # noqa: PLC0415 (few threads split)

        at = present.split.at
        return NextMove(find_container(snapshot, at).label, splits=True, at=at)
    try:
        workflow = get_workflow(snapshot, present.workflow)
        turn = decide_next(snapshot, present, workflow)
        return NextMove(turn.role, splits=turn.splits, at=turn.at)
    except UwfError as problem:
        return NextMove(None, problem)


def find_steered(store: Store, snapshot: Snapshot) -> Steered | None:
    status = snapshot.record.status
    if status == "killed":
        return _read_steered(snapshot)
    if status != "paused":
        return None
    # A step that was under way, or a patch, may follow the pause.
    for each in walk_history(store, snapshot.commit.oid):
        if each.record.event == "pause":
            return _read_steered(each)
    return None


def _read_steered(snapshot: Snapshot) -> Steered:
    return Steered(snapshot.commit.author.decode(errors="replace"), snapshot.body)


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
    held = _find_held(store, snapshot)
    if held is not None:
        return _tell_problem(held)
    present = snapshot.get_present()
    if status == "paused":
        return Advice(_after_pause(thread, present))
    if status == "failed":
        return Advice(_retry(thread))
    if status == "waiting" and present.waiting is not None:
        return Advice(_wait(thread, present.waiting))
    if status == "split":
        return _when_split(store, snapshot)
    limit = _find_limit(store, snapshot)
    if limit is not None and move.problem is None and move.turn_of is not None:
        return _tell_problem(limit)
    return _when_ready(store, snapshot, move, default or store.config.get(CONFIG_NAME))


def _find_held(store: Store, snapshot: Snapshot) -> UwfError | None:
    """Return why the threads around a branch do not let it go on; None if they do."""
    if snapshot.record.parent_thread is None:
        return None
    from uwf_git.commands.turn.branches import (  # noqa: PLC0415 (few threads are branches)
        BranchHeld,
        check_ancestors,
    )

    try:
        check_ancestors(store, snapshot)
    except BranchHeld as held:
        return held
    return None


def _when_split(store: Store, snapshot: Snapshot) -> Advice:
    try:
        return _choose_for_split(store, snapshot)
    except StoreDamaged as damage:
        # What is known of the others helps little: no step or join passes it.
        return _tell_problem(damage)


def _choose_for_split(store: Store, snapshot: Snapshot) -> Advice:
    thread = snapshot.record.thread
    from uwf_git.commands.split.family import (  # noqa: PLC0415 (few threads split)
        list_branches,
        walk_descendants,
    )

    below = [branch for head, branch in walk_descendants(store, snapshot) if not head.archived]
    failed = sum(branch.record.status == "failed" for branch in below)
    if failed:
        told = "a branch has failed" if failed == 1 else f"{failed} branches have failed"
        return Advice(
            f"{told}: `uwf thread retry {thread}` lets a run go on, then `uwf thread run {thread}`"
        )
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
    held = [each for each in leaves if each.record.status in {"waiting", "paused"}]
    if held and len(held) == len(leaves) and not has_new:
        return Advice(_when_held(thread, held))
    return Advice(
        f"its branches go on: `uwf thread run {thread}` drives all of them, "
        f"`uwf thread step {thread}` steps each once",
        is_usual=True,
    )


def _find_problem(store: Store, split: Sequence[Snapshot], *, is_at_end: bool) -> UwfError | None:
    """Return what holds up threads that have *split*, the outermost first: a join, or a limit."""
    from uwf_git.commands.turn.branches import find_join_problem  # noqa: PLC0415 (few threads split)

    problems = (find_join_problem(store, each) for each in split)
    problem = next((each for each in problems if each is not None), None)
    if problem is not None or is_at_end:
        return problem
    return _find_limit(store, split[0])


def _find_limit(store: Store, snapshot: Snapshot) -> UwfError | None:
    """Return the limit that lets a thread begin no step, or why what was spent is not known."""
    try:
        return find_limit(store, snapshot, snapshot.get_present())
    except StoreDamaged as damage:
        return damage


def _tell_problem(problem: UwfError) -> Advice:
    return Advice("; ".join(each for each in (problem.message, problem.hint) if each))


def _when_held(thread: ThreadId, held: Sequence[Snapshot]) -> str:
    """Return what to type when all that is left of the branches of *thread* needs somebody."""
    first = held[0]
    branch, present = first.record.thread, first.get_present()
    waiting = None if first.record.status == "paused" else present.waiting
    if waiting is None:
        told = f"branch {branch} is paused: {_after_pause(branch, present)}"
    elif waiting.until is None:
        told = f"branch {branch} waits for {waiting.role}: {_wait(branch, waiting)}"
    else:
        told = f"branch {branch} waits for the end of a limit: {_wait(thread, waiting)}"
    more = len(held) - 1
    return told + (f"; {more} more {'waits' if more == 1 else 'wait'}" if more else "")


def _retry(thread: ThreadId) -> str:
    """Return what to type when an agent has failed."""
    return (
        f"`uwf thread retry {thread}` lets a run go on, and with -m tells the agent something; "
        f"`uwf thread step {thread}` tries once more"
    )


def _wait(thread: ThreadId, waiting: Waiting) -> str:
    if waiting.until is None:
        return (
            f"`uwf thread answer {thread}` asks and records the answer; to have an agent play it: "
            f"`uwf thread amend {thread} --agent {shlex.quote(f'{waiting.role}=CMD')}`"
        )
    return (
        f"`uwf thread run {thread} --wait` sleeps until then; "
        f"`uwf thread resume {thread}` lets it try now"
    )


def _after_pause(thread: ThreadId, present: ThreadState) -> str:
    then = {
        "failed": f"`uwf thread retry {thread}`",
        "waiting": f"`uwf thread answer {thread}`",
    }.get(str(present.paused_from), f"`uwf thread run {thread}`")
    if present.waiting is not None and present.waiting.until is not None:
        then = f"`uwf thread run {thread} --wait`"
    return f"`uwf thread resume {thread}` lets it go on, then {then}"


def _when_ready(store: Store, snapshot: Snapshot, move: NextMove, default: str | None) -> Advice:
    thread = snapshot.record.thread
    if move.problem is not None:
        return Advice(move.problem.hint or f"`uwf thread read {thread}` shows where it stands")
    role = move.turn_of
    if role is None:
        return _go_on(store, snapshot, "no role is left", _ENDS)
    if move.splits:
        return _go_on(store, snapshot, f"{role} comes next, in branches", "begins them")
    command = _find_command(snapshot, role) or default
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


def _find_command(snapshot: Snapshot, role: str) -> str | None:
    present = snapshot.get_present()
    if role not in present.binding:
        return None
    return str(get_typed(snapshot, present.binding[role], AGENT_CONFIG).payload["command"])
