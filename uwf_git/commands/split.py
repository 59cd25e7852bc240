"""The commits of branches: what splits a thread, into what, how branches begin, how they join.

The first to split evaluates expressions; whoever checks a split reads their values from its
StartNodes, and everything else follows again. Format: FORMAT.md, "Branches" and "State of a flow".
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

from uwf_git.engine.events import LoopPass
from uwf_git.engine.events import Node as EventNode
from uwf_git.engine.flow_move import count_passes
from uwf_git.engine.flow_state import (
    Join,
    Result,
    Side,
    find_counting,
    find_depth_problem,
    join_branches,
    list_entries,
    merge_conflict,
    merge_nothing,
    pick_result,
)
from uwf_git.errors import Refused
from uwf_git.model.builtin import AGENT_CONFIG, STEP, TEXT, find_reference, reference
from uwf_git.model.event_folds import (
    Cause,
    Joined,
    begin_state,
    build_start,
    describe_branch,
    describe_join,
    describe_split,
)
from uwf_git.model.event_rules import RULES, apply_event
from uwf_git.model.flow import (
    MAX_ITEMS,
    MAX_NESTING,
    SPLITTING,
    Flow,
    FlowNode,
    NotAPosition,
    Position,
    parse_position,
)
from uwf_git.model.names import ALPHABET, NodeHash, Oid, ThreadId
from uwf_git.model.node import Node, build_node
from uwf_git.model.text import first_line
from uwf_git.model.thread import ENDED, Child, Split, ThreadState, TransitionRecord, add_usage
from uwf_git.model.workflow import Workflow
from uwf_git.store.objects.commit import (
    CommitDraft,
    CommitView,
    Signing,
    build_commit,
    damaged_commit,
)
from uwf_git.store.store import Store
from uwf_git.store.threads.history import (
    NewCommit,
    Snapshot,
    draft_next,
    find_newest_step,
    find_previous,
    get_flow,
    get_role,
    get_workflow,
    read_at,
    read_standing,
    write_draft,
)

_NOBODY = b"uwf <uwf@uwf>"
JOINER = "uwf:join"
_MS = 1000
_ID_SYMBOLS = 26
# From here on the ids of all branches of a split are the same.
_SAME = 14


class SplitRefused(Refused):
    code = "split-refused"


class Container(NamedTuple):
    """What splits a thread: a place of its flow, or a role of its graph that a workflow plays."""

    at: str
    label: str
    kind: str
    workflow: Workflow

    node: FlowNode | None
    """Its node in the flow; None in a graph."""

    used: NodeHash
    """The Workflow node that its branches run."""

    flow: Flow | None = None

    @property
    def item(self) -> str:
        """Of a map: the name of an item."""
        return "item" if self.node is None else self.node.item

    @property
    def policy(self) -> Mapping[str, Any]:
        """Its fields; a role of a graph has none."""
        return {} if self.node is None else self.node.fields


def read_flow(snapshot: Snapshot, workflow: Workflow) -> Flow | None:
    return None if workflow.flow is None else get_flow(snapshot, workflow.flow)


def read_entry(snapshot: Snapshot) -> Position | None:
    """Return where the thread begins in its flow, if it is a branch of a flow."""
    entry = snapshot.get_start().payload.get("entry")
    return None if entry is None else parse_position(entry)


def find_in_flow(snapshot: Snapshot, at: str | None) -> tuple[Flow, Position] | None:
    """Return the place *at* and its flow; None in a graph, or if the flow has no such place."""
    if at is None:
        return None
    flow = read_flow(snapshot, get_workflow(snapshot, snapshot.record.workflow))
    with suppress(NotAPosition):
        position = parse_position(at)
        if flow is not None and position.place in flow.nodes:
            return flow, position
    return None


def find_container(snapshot: Snapshot, at: str) -> Container:
    workflow = get_workflow(snapshot, snapshot.record.workflow)
    if workflow.flow is None:
        role = workflow.roles.get(at)
        used = None if role is None else get_role(snapshot, role).workflow
        if used is None:
            raise SplitRefused(f"{at or 'no Uwf-At'} is no role that a workflow plays")
        return Container(at, at, "workflow", workflow, None, used)
    found = find_in_flow(snapshot, at)
    node = None if found is None else found[0].nodes[found[1].place]
    if found is None or node is None or node.kind not in SPLITTING:
        raise SplitRefused(f"{at} is no place at which the flow splits")
    used = node.workflow or workflow.hash
    return Container(at, node.label, node.kind, workflow, node, used, found[0])


_MOST_OF_ITEM = 60


def label_branch(container: Container, number: int, tip: Snapshot | None = None) -> str:
    """Return the name of a branch for people: its node's name, or the container's.

    The branch of a map that has begun, at *tip*, has its item in its name.
    """
    if container.kind == "map" and tip is not None:
        item = tip.get_start().payload.get("initialState", {}).get(container.item)
        told = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
        return f"{container.label}: {first_line(told)[:_MOST_OF_ITEM]}"
    if container.kind == "parallel" and container.flow is not None and container.node is not None:
        return container.flow.nodes[f"{container.node.place}/{number}"].label
    return container.label


# The branches that it asks for.


class Asked(NamedTuple):
    items: Sequence[Any] = ()

    prompt: str = ""

    state: Mapping[str, Any] | None = None
    """Of a workflow: the state that it begins with; None: its own."""


class Branch(NamedTuple):
    label: str
    workflow: NodeHash
    workflow_name: str
    prompt: str
    binding: Mapping[str, NodeHash]
    initial_state: Mapping[str, Any] | None = None
    entry: str | None = None
    """The place of the flow at which it begins and ends; None: its workflow is its own."""

    own_state: Mapping[str, Any] = MappingProxyType({})
    """Of a workflow of its own: the state that it begins with, unless its StartNode says."""


class SplitPlan(NamedTuple):
    at: str
    label: str
    branches: Sequence[Branch]
    nodes: tuple[Node, ...] = ()
    """The nodes that its branches refer to, and the thread may not have."""


def plan_split(snapshot: Snapshot, container: Container, asked: Asked) -> SplitPlan:
    if snapshot.get_nesting() >= MAX_NESTING:
        raise SplitRefused(f"threads would be nested deeper than {MAX_NESTING}")
    if len(asked.items) > MAX_ITEMS:
        raise SplitRefused(f"{container.label} would have more than {MAX_ITEMS:,} branches")
    if container.kind == "workflow":
        return _plan_workflow(snapshot, container, asked)
    branches = tuple(_own_branches(snapshot, container, asked.items))
    return SplitPlan(container.at, container.label, branches)


def plan_again(split: Snapshot) -> SplitPlan:
    tip = read_at(split.objects, split.commit.parents[0])
    container = find_container(tip, split.record.at or "")
    present = split.get_present()
    children = () if present.split is None else present.split.children
    payloads = [split.get_node(child.start).payload for child in children]
    asked = Asked(prompt=tip.get_start().payload["prompt"])
    if container.kind == "map":
        name = container.item
        try:
            asked = Asked([payload["initialState"][name] for payload in payloads])
        except KeyError:
            raise SplitRefused(f"it has a branch without {name}") from None
    elif container.kind == "workflow" and "input" in container.policy and payloads:
        asked = Asked(prompt=payloads[0]["prompt"], state=payloads[0].get("initialState"))
    return plan_split(tip, container, asked)


def _plan_workflow(snapshot: Snapshot, container: Container, asked: Asked) -> SplitPlan:
    workflow = get_workflow(snapshot, container.used)
    present = snapshot.get_present()
    date_ms = snapshot.commit.time_s * 1000
    binding: dict[str, NodeHash] = {}
    agents: list[Node] = []
    for role in workflow.roles:
        if role in present.binding:
            binding[role] = present.binding[role]
            continue
        if (payload := workflow.agent_overrides.get(role, workflow.default_agent)) is not None:
            agents.append(build_node(AGENT_CONFIG, payload, timestamp=date_ms))
            binding[role] = agents[-1].hash
    # Those that are none of the thread's own roles are for workflows further inside.
    inner = [role for role in sorted(present.binding) if role not in container.workflow.roles]
    binding = {role: present.binding[role] for role in inner} | binding
    branch = Branch(
        container.label,
        workflow.hash,
        workflow.name,
        asked.prompt,
        binding,
        asked.state,
        own_state=workflow.initial_state or {},
    )
    return SplitPlan(container.at, container.label, (branch,), tuple(agents))


def _own_branches(
    snapshot: Snapshot, container: Container, items: Sequence[Any]
) -> Iterator[Branch]:
    """Yield branches that run a part of the thread's own flow."""
    if container.flow is None:
        return
    entries = list_entries(container.flow, parse_position(container.at), items)
    present, prompt = snapshot.get_present(), snapshot.get_start().payload["prompt"]
    for number, (entry, state) in enumerate(entries):
        yield Branch(
            label_branch(container, number),
            present.workflow,
            snapshot.record.workflow_name,
            prompt,
            present.binding,
            state or None,
            str(entry),
        )


# Derived commits: they follow from those before them, so all who make one make the same.


class Derived(NamedTuple):
    """A commit that follows from others, not yet written."""

    draft: CommitDraft
    new: NewCommit
    signing: Signing

    @property
    def oid(self) -> Oid:
        return Oid(build_commit(self.draft, self.signing).id.decode())

    def write(self, store: Store) -> Oid:
        """Write the commit, and return its id; no ref moves."""
        return write_draft(store, self.draft, self.new, self.signing)


def draft_split(tip: Snapshot, plan: SplitPlan) -> Derived:
    at, branches = plan.at, plan.branches
    date_ms = tip.commit.time_s * _MS
    starts = [
        _start_node(branch, tip.record.node, nesting=tip.get_nesting() + 1, timestamp=date_ms)
        for branch in branches
    ]
    children = tuple(
        Child(_child_id(tip, at, number, date_ms), start.hash)
        for number, start in enumerate(starts)
    )
    pairs = zip(branches, children, strict=True)
    words = describe_split(plan.label, [(branch.label, child.thread) for branch, child in pairs])
    after = apply_event(read_standing(tip), "split", Cause(at=at, split=Split(at, children)))
    return _derive([tip], NewCommit(after.record, words, after.state, (*starts, *plan.nodes)))


class ReadSplit(NamedTuple):
    """A split as its commit has it, for the first commits of its branches."""

    split: Snapshot
    present: ThreadState
    plan: SplitPlan
    numbers: Mapping[ThreadId, int]

    def draft_start(self, number: int) -> Derived:
        """Draft the first commit of branch *number*."""
        branch, split = self.plan.branches[number], self.present.split
        if split is None:
            raise ValueError("the thread has no branches")  # a bug of the caller
        child = split.children[number]
        start = self.split.get_node(child.start)
        begun = begin_state(start, branch.own_state)
        if branch.entry is not None:
            begun = begun._replace(
                state={**self.present.state, **(branch.initial_state or {})},
                visits=self.present.visits,
            )
        record = TransitionRecord(
            thread=child.thread,
            event="start",
            status="ready",
            node=start.hash,
            depth=0,
            workflow=branch.workflow,
            workflow_name=branch.workflow_name,
            cause=start.hash,
            parent_thread=self.split.record.thread,
        )
        new = NewCommit(record, describe_branch(number, branch.label), begun, nodes=(start,))
        return _derive([self.split], new, is_own_start=True)


def read_split(split: Snapshot) -> ReadSplit:
    present = split.get_present()
    if present.split is None or split.record.event != "split":
        raise SplitRefused("a thread begins after a commit that is no split")
    numbers = {child.thread: number for number, child in enumerate(present.split.children)}
    plan = plan_again(split)
    if len(plan.branches) != len(present.split.children):
        raise SplitRefused(f"the split would have {len(plan.branches)} branches")
    return ReadSplit(split, present, plan, numbers)


class Ending(NamedTuple):
    label: str

    said: Sequence[tuple[str, str]]
    """The label of each branch, and what it said last."""

    meta: Any
    state: Mapping[str, Any]

    is_role: bool = False
    """The container is a role of a graph, which took its step so."""

    split: Snapshot | None = None
    """The commit at which the thread split; None if it is not known."""


def plan_ending(tip: Snapshot, tips: Sequence[Snapshot]) -> Ending:
    present = tip.get_present()
    container = find_container(tip, "" if present.split is None else present.split.at)
    is_apart = container.policy.get("isolation") is not None
    said = [
        (label_branch(container, n), _find_said(each, is_apart=is_apart))
        for n, each in enumerate(tips)
    ]
    ended = [(n, each) for n, each in enumerate(tips) if each.record.status == "completed"]
    counting = find_counting(container.policy, {n: each.commit.time_s for n, each in ended})
    errors = [first_line(each.body) or "killed" for each in tips if each.record.status == "killed"]
    if container.policy.get("join") == "any" and counting:
        # The others were killed since one was enough.
        errors = []
    split = find_split(tip)
    states = (Side(n, said[n][0], tips[n].get_present().state) for n in counting)
    join = Join(split.get_present().state, present.state, [*states], errors)
    if container.node is None:
        merged = merge_nothing(join)
    else:
        merged = join_branches(
            join, container.node, len(tips), lambda n: read_result(tips[n], container.flow)
        )
    if merged.conflicts:
        raise merge_conflict(tip.record.thread, container.label, merged.conflicts)
    if (problem := find_depth_problem(merged.state)) is not None:
        raise Refused(
            f"the branches of {container.label} cannot be joined: {problem}",
            code="state-too-deep",
            hint=f"`uwf thread fork {tip.record.thread}` begins a thread before the split",
        )
    branches = [{"status": each.record.status, "steps": each.record.depth} for each in tips]
    meta: Any = {"branches": branches}
    if container.kind == "workflow" and counting:
        meta = read_result(tips[0], container.flow)[0]
    return Ending(container.label, said, meta, merged.state, container.flow is None, split)


def read_result(tip: Snapshot, around: Flow | None = None) -> Result:
    """Return meta and content of what a branch came to; None and nothing if it took no step.

    Those of a graph follow from the flow *around* it.
    """
    head, newest = tip.get_head_node(), find_newest_step(tip)
    found = find_in_flow(tip, newest.record.at)
    flow, node = (around, None) if found is None else (found[0], found[0].nodes[found[1].place])
    if flow is not None and flow.has_results and not is_work(tip):
        if newest.record.event == "join":
            ends = (read_at(tip.objects, each) for each in newest.commit.parents[1:])
            counting = [each for each in ends if each.record.status == "completed"]
            if counting and (node is None or node.kind == "workflow"):
                return read_result(counting[0], flow)
            if node is not None:
                begun = walk_back(tip, "start").get_present().state
                return pick_result(node, begun, tip.get_present().state, map(read_result, counting))
        elif newest.record.retries_left is None:
            head = tip.get_node(find_previous(head) or head.hash)
    content = find_reference(head.payload.get("content")) if tip.record.depth else None
    if content is None:
        return None, ""
    return head.payload["meta"], str(tip.get_node(content).payload)


def is_work(tip: Snapshot) -> bool:
    """Check whether the newest step of the thread at *tip* is neither a join nor a verdict."""
    record = find_newest_step(tip).record
    found = find_in_flow(tip, record.at)
    verifier = None if found is None else found[0].nodes[found[1].place].verifier
    return record.event != "join" and (verifier is None or verifier != record.role)


def _find_said(tip: Snapshot, *, is_apart: bool) -> str:
    """Return what the newest step of a branch said, without its role, and where its work is."""
    at = find_newest_step(tip)
    said = at.subject.partition(": ")[2] if at.record.depth else "no step"
    return f"{said} ({name_work(tip.record.thread)})" if is_apart else said


def name_work(thread: ThreadId) -> str:
    """Return the ref of the work of a branch that works apart, in the user's repository."""
    return f"refs/uwf/work/{thread}"


def draft_join(tip: Snapshot, tips: Sequence[Snapshot], ending: Ending) -> Derived:
    """Draft the commit that joins the branches that ended at *tips*, in order."""
    date_ms = max(each.commit.time_s for each in (tip, *tips)) * _MS
    split = tip.get_present().split
    at = None if split is None else split.at
    content = "".join(f"{n} {name}: {words}\n" for n, (name, words) in enumerate(ending.said))
    text = build_node(TEXT, content, timestamp=date_ms)
    agent = build_node(AGENT_CONFIG, {"command": JOINER}, timestamp=date_ms)
    step = build_node(
        STEP,
        {
            "role": ending.label,
            "meta": ending.meta,
            "content": reference(text.hash),
            "agent": reference(agent.hash),
            "prev": reference(tip.record.node),
            "branches": [reference(each.record.node) for each in tips],
        },
        timestamp=date_ms,
    )
    words = describe_join(ending.label, [each.record.status for each in tips])
    cause = Cause(node=step, role=ending.label, at=at, joined=_add_up(tip, tips, ending))
    after = apply_event(read_standing(tip), "join", cause)
    new = NewCommit(after.record, words, after.state, (step, text, agent))
    return _derive([tip, *tips], new, grown_from=ending.split)


def _derive(
    parents: Sequence[Snapshot],
    new: NewCommit,
    *,
    is_own_start: bool = False,
    grown_from: Snapshot | None = None,
) -> Derived:
    signing = Signing(_NOBODY, _NOBODY, max(each.commit.time_s for each in parents) * _MS)
    draft = draft_next(
        parents[0].objects, parents, new, is_own_start=is_own_start, grown_from=grown_from
    )
    return Derived(draft, new, signing)


def _start_node(branch: Branch, parent: NodeHash, *, nesting: int, timestamp: int) -> Node:
    state, entry = branch.initial_state, branch.entry
    more = {
        **({} if state is None else {"initialState": dict(state)}),
        "parent": reference(parent),
        "depth": nesting,
        **({} if entry is None else {"entry": entry}),
    }
    return build_start(branch.workflow, branch.prompt, branch.binding, more, timestamp=timestamp)


def _child_id(tip: Snapshot, at: str, number: int, date_ms: int) -> ThreadId:
    """Return the ULID of a branch: the date, its number, and a hash of where it began."""
    seed = f"uwf child\n{tip.record.thread}\n{tip.commit.oid}\n{at}\n"
    digest = hashlib.sha256(seed.encode()).digest()[:8]
    value = (date_ms << 80) | (number << 64) | int.from_bytes(digest, "big")
    shifts = range(5 * (_ID_SYMBOLS - 1), -1, -5)
    return ThreadId("".join(ALPHABET[(value >> shift) & 31] for shift in shifts))


def _add_up(tip: Snapshot, tips: Sequence[Snapshot], ending: Ending) -> Joined:
    """Return what the branches spent, and the steps that each role took in them."""
    usage: dict[str, Any] = {}
    execution_ms = 0
    visits: dict[str, int] = {ending.label: 1} if ending.is_role else {}
    at_start = tip.get_present().visits
    for each in tips:
        present = each.get_present()
        usage = add_usage(usage, dict(present.usage))
        execution_ms += present.execution_ms
        inherited = at_start if "entry" in each.get_start().payload else {}
        for role, count in present.visits.items():
            if more := count - inherited.get(role, 0):
                visits[role] = visits.get(role, 0) + more
    return Joined(ending.state, usage, execution_ms, visits, ending.is_role)


# The same commits again, to compare; and those that a commit of a branch comes from.


def is_derived(record: TransitionRecord, commit: CommitView) -> bool:
    """Check whether a commit claims to follow from those before it: no one is its author."""
    return RULES[record.event].is_derived or (record.event == "start" and bool(commit.parents))


class Remaking:
    """Makes derived commits again; of a split that many branches follow, the plan is made once."""

    def __init__(self) -> None:
        self._newest: tuple[Oid, ReadSplit] | None = None

    def remake(self, snapshot: Snapshot) -> Derived:
        """Return the derived commit that must stand at *snapshot*."""
        parents = snapshot.commit.parents
        if not parents:
            raise SplitRefused("it follows no commit")
        first = read_at(snapshot.objects, parents[0])
        if snapshot.record.event == "join":
            return _remake_join(first, [read_at(first.objects, oid) for oid in parents[1:]])
        if len(parents) > 1:
            raise SplitRefused("it has more than one parent")
        if snapshot.record.event == "split":
            return draft_split(first, plan_again(snapshot))
        if self._newest is None or self._newest[0] != first.commit.oid:
            self._newest = (first.commit.oid, read_split(first))
        found = self._newest[1]
        thread = snapshot.record.thread
        if thread not in found.numbers:
            raise SplitRefused(f"{thread} is no branch of {first.record.thread}")
        return found.draft_start(found.numbers[thread])


def _remake_join(tip: Snapshot, tips: list[Snapshot]) -> Derived:
    split = tip.get_present().split
    if split is None:
        raise SplitRefused("a join after a commit that has no branches")
    if [each.record.thread for each in tips] != [child.thread for child in split.children]:
        raise SplitRefused("a join of other branches than those of the split")
    for each, child in zip(tips, split.children, strict=True):
        thread, status = each.record.thread, each.record.status
        if status not in ENDED:
            raise SplitRefused(f"a join of branch {thread}, which is {status}")
        is_own = each.record.parent_thread == tip.record.thread
        if not is_own or each.get_start().hash != child.start:
            raise SplitRefused(f"{thread} did not begin as branch of {tip.record.thread}")
    return draft_join(tip, tips, plan_ending(tip, tips))


def find_split(tip: Snapshot) -> Snapshot:
    """Return the commit at which the thread at *tip* split; it has not joined since."""
    found = walk_back(tip, "split", "start", "fork", "join")
    if found.record.event != "split":
        raise SplitRefused(f"thread {tip.record.thread} has no branches")
    return found


def find_own_split(at: Snapshot) -> Snapshot | None:
    """Return the split at which the thread of *at* began as a branch; None for no branch."""
    # Commits of an older uwf do not name the thread around it.
    if "parent" not in at.get_start().payload:
        return None
    at = walk_back(at, "start", "fork")
    return None if at.record.event == "fork" else read_at(at.objects, at.commit.parents[0])


def check_children(tip: Snapshot, split: Split) -> None:
    """Check that the ids of branches follow from the split: forged threads could go in circles."""
    with suppress(SplitRefused, IndexError):
        before = read_at(tip.objects, find_split(tip).commit.parents[0])
        first = _child_id(before, split.at, 0, before.commit.time_s * _MS)
        ids = [child.thread for child in split.children]
        if ids[:1] in ([], [first]) and all(each[_SAME:] == first[_SAME:] for each in ids):
            return
    raise damaged_commit(tip.commit.oid, "names branches that do not follow from it")


def walk_back(at: Snapshot, *events: str) -> Snapshot:
    while at.record.event not in events and at.commit.parents:
        at = read_at(at.objects, at.commit.parents[0])
    return at


# The nodes of a flow as those who watch a thread know them: a name, and the pass.


def find_node(snapshot: Snapshot, at: str | None) -> EventNode | None:
    """Return the node at the place *at*; None in a graph, or if the flow has no such place."""
    found = find_in_flow(snapshot, at)
    return None if found is None else _describe(*found, count_passes(*found) + 1)


def list_new_passes(before: Snapshot, present: ThreadState, at: str | None) -> list[LoopPass]:
    """List the loop passes that a turn or split at *at* after *before* begins, outermost first."""
    place = find_in_flow(before, at)
    if place is None or at in {present.trying, present.tried and present.tried.at}:
        return []
    flow, position = place
    last = read_entry(before) if present.at is None else parse_position(present.at)
    found: list[LoopPass] = []
    for level in range(1, len(position.parts)):
        around = position.parts[:level]
        loop = Position(around)
        is_begun = last is not None and last.parts[:level] == around
        if flow.nodes[loop.place].kind == "loop" and not is_begun:
            found.append(LoopPass(_describe(flow, loop, loop.turn or 1), level))
    return found


def _describe(flow: Flow, position: Position, turn: int) -> EventNode:
    node = flow.nodes[position.place]
    return EventNode(node.label, str(node.fields.get("name") or node.label), turn)
