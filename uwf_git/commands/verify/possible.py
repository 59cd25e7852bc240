"""Check whether a commit may follow: what making it again from its event does not tell.

A thread goes on only where its rules lead: from its status, to a role that is next, at a place of
its flow, under rules with which it can go on. Format: FORMAT.md, "What events do", "Positions".
"""

from collections.abc import Iterator

from uwf_git.engine.append_check import Rules, find_other_change
from uwf_git.engine.flow_change import find_lost_place
from uwf_git.engine.flow_possible import is_possible
from uwf_git.engine.flow_tries import find_open_try, is_verdict_due
from uwf_git.model.event_folds import Standing
from uwf_git.model.event_rules import RULES, may_follow
from uwf_git.model.flow import Flow
from uwf_git.model.limit import find_limit_problem
from uwf_git.model.node import Node
from uwf_git.model.position import NotAPosition, Position, parse_position
from uwf_git.model.thread import Event, ThreadState
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition import END
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.store.objects.commit import read_commit, read_commit_file
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.oid import Oid
from uwf_git.store.threads.message import parse_thread_message
from uwf_git.store.threads.now_file import parse_now
from uwf_git.store.threads.snapshot import NOW_FILE

_PERSON = "human"


def check_record(
    before: TransitionRecord | None, record: TransitionRecord, thread: ThreadId | None
) -> Iterator[str]:
    """List why *record* cannot follow *before*; it must be of *thread* if that is known."""
    event, rule = record.event, RULES[record.event]
    if thread is not None and record.thread != thread:
        yield f"Uwf-Thread is {record.thread}, and this is the history of {thread}"
    if record.parent_thread == record.thread:
        yield "Uwf-Parent-Thread is the thread itself"
    if before is None:
        return
    if event == "start":
        yield "Uwf-Event is start, and it has a parent"
    elif not may_follow(event, before.status):
        yield f"Uwf-Event is {event}, after the thread was {before.status}"
    if before.status == "paused" and record.status != "paused" and rule.keeps_pause:
        yield f"Uwf-Status is {record.status} after {event}, and the thread was paused"
    if event == "fork" and record.thread == before.thread:
        yield "fork must have a thread of its own, and goes on with the one before"
    if event == "answer" and record.agent != _PERSON:
        yield f"Uwf-Agent is {record.agent!r}, and an answer is that of {_PERSON!r}"


def check_parents(event: Event, count: int) -> str | None:
    """Return what is wrong with the number of parents of a commit of this event; None if right."""
    wanted = RULES[event].parents
    if wanted is None:
        return None
    told = "must have one" if wanted else "may have none"
    return None if count == wanted else f"{event} has {count} parents, and {told}"


def check_person(before: Standing, record: TransitionRecord) -> Iterator[str]:
    """List what is wrong with *record* where a person's answer is awaited, or is not."""
    waiting = before.state.waiting
    is_awaited = waiting is not None and waiting.until is None
    event = record.event
    person = RULES[event].person
    if person == "never" and before.record.status == "waiting" and is_awaited:
        yield f"Uwf-Event is {event}, and the thread waited for a person"
    if person == "only" and not is_awaited:
        yield f"Uwf-Event is {event}, and the thread did not wait for a person"
    elif person == "only" and waiting is not None and record.role != waiting.role:
        yield f"Uwf-Role is {record.role!r}, and the thread waited for {waiting.role!r}"
    elif person == "only" and waiting is not None and record.at != waiting.at:
        yield f"Uwf-At is {record.at}, and the thread waited at {waiting.at}"


class Way:
    """Where a thread may go from *before*, by the rules in force there."""

    def __init__(self, before: Standing, rules: Rules, entry: Position | None) -> None:
        """Take the rules; *entry* is where the thread began in its flow, if it is a branch."""
        self._before, self._rules, self.entry = before.state, rules, entry

    @property
    def flow(self) -> Flow | None:
        """The flow; None if the workflow is a graph."""
        return self._rules.flow

    def find_turn_problem(self, record: TransitionRecord) -> str | None:
        """Return why the turn of *record* cannot be next; None if it may."""
        if record.role not in self._rules.payload["roles"]:
            return f"Uwf-Role is {record.role!r}, which is no role of the workflow"
        waiting = self._before.waiting
        if self.flow is None:
            if record.at is not None:
                return f"{record.event} has an Uwf-At, and the workflow is a graph"
            if waiting is not None and waiting.role == record.role:
                return None  # checked when it began to wait
            problem = self.find_graph_problem(record.role or "")
            return None if problem is None else f"Uwf-Role is {record.role!r}, {problem}"
        try:
            at = parse_position(record.at or "")
        except NotAPosition:
            return f"Uwf-At is {record.at}, which is no position"
        problem = self._find_place_problem(record, at)
        return None if problem is None else f"Uwf-At is {record.at}, {problem}"

    def find_end_problem(self) -> str | None:
        """Return why the thread cannot end; None if it may."""
        if self.flow is None:
            problem = self.find_graph_problem(END)
        else:
            problem = self.find_flow_problem(None)
        return None if problem is None else f"the thread ends, {problem}"

    def find_split_problem(self, at: str) -> str | None:
        """Return why the thread cannot split at the place or role *at*; None if it may."""
        if self.flow is None:
            problem = self.find_graph_problem(at)
        else:
            problem = self.find_flow_problem(parse_position(at))
        return None if problem is None else f"Uwf-At is {at}, {problem}"

    def find_graph_problem(self, to: str) -> str | None:
        """Return why no transition leads from the thread's role to *to*; None if one may."""
        role = self._before.role
        for way in (self._rules.graph or {}).get(role, ()):
            if way.to == to:
                return None
            if way.condition is None:
                break
        return f"where no transition leads from {role}"

    def find_flow_problem(self, at: Position | None) -> str | None:
        """Return why no condition leads to *at*, None for the end; None if one may."""
        before, flow = self._before, self.flow
        if flow is None:
            raise ValueError("a graph has no places")  # a bug of the caller
        last, tried = find_open_try(flow, before.tried, before.at, entry=self.entry)
        if tried is not None:
            return None if tried == at else f"and the try at {tried} was not over"
        try:
            previous = None if last is None else parse_position(last)
        except NotAPosition:
            return f"and now.json said {last}"
        if not is_possible(flow, previous, at, entry=self.entry):
            return f"where no condition leads from {last or 'the beginning'}"
        return None

    def _find_place_problem(self, record: TransitionRecord, at: Position) -> str | None:
        before = self._before
        node = None if self.flow is None else self.flow.nodes.get(at.place)
        if node is None or node.kind != "agent":
            return "which is no place of an agent"
        is_verdict = is_verdict_due(node, before.tried, record.at)
        role = node.verifier if is_verdict else node.agent
        if role != record.role:
            return f"which is the place of {role}"
        if before.waiting is not None and before.waiting.at == record.at:
            return None  # checked when it began to wait
        return self.find_flow_problem(at)


def check_amend(
    between: tuple[Standing, Standing], rules: tuple[Rules, Rules], signal: Node, *, is_branch: bool
) -> Iterator[str]:
    """List why a thread cannot go on under the rules that *signal* makes.

    *between* is where the thread stands before and after, *rules* are those of then.
    """
    before, after = between
    limits = signal.payload.get("limits", {})
    if is_branch and limits:
        yield f"amend gives limits to a branch: {', '.join(limits)}"
    for name, value in limits.items():
        problem = None if value is None else find_limit_problem(name, value)
        if problem is not None:
            yield f"the limit {name} {problem}"
    workflow = after.state.workflow
    if workflow == before.state.workflow:
        return
    if is_branch:
        yield f"amend gives a branch another workflow than its split: {workflow}"
        return
    is_append = signal.payload["action"] == "append"
    problem = _find_rules_problem(*rules, before.state, is_append=is_append)
    if problem is not None:
        yield problem


def _find_rules_problem(
    old: Rules, new: Rules, before: ThreadState, *, is_append: bool
) -> str | None:
    if before.split is not None and not is_append:
        return "the thread has split, and gets another workflow"
    other = find_other_change(old, new) if is_append else None
    if other is not None:
        return f"append does more than add to the workflow: it {other}"
    lost = find_lost_place(old.flow, new.flow, before)
    if lost is not None:
        return f"the thread stands at {lost}, and the new workflow differs on the way"
    gone = None
    if old.flow is None:
        gone = before.find_gone_role(new.payload["roles"] if new.flow is None else ())
    if gone is not None:
        return f"the thread stands at {gone!r}, which is no role of the new workflow"
    return None


def find_poked(objects: ObjectStore, before: Oid) -> Standing | None:
    """Return the thread before the step that a poke after *before* takes back; None without one.

    Raises:
        StoreDamaged, NotAPresent: a commit on the way is damaged.
    """
    view = read_commit(objects, before)
    node = parse_thread_message(view.message).node
    while view.parents:
        record = parse_thread_message(view.message)
        view = read_commit(objects, view.parents[0])
        if RULES[record.event].steps > 0 and record.node == node:
            state = parse_now(read_commit_file(objects, view, NOW_FILE)).present
            return Standing(parse_thread_message(view.message), state)
    return None
