"""Draft the derived commits: split, the start of a branch, join.

Format: FORMAT.md, "Branches".
"""

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from uwf_git.model.builtin import AGENT_CONFIG, START, STEP, TEXT
from uwf_git.model.event_folds import Cause, Joined, begin_state
from uwf_git.model.event_rules import apply_event
from uwf_git.model.event_words import describe_branch, describe_join, describe_split
from uwf_git.model.names import ALPHABET, NodeHash, ThreadId
from uwf_git.model.node import Node, build_node
from uwf_git.model.references import reference
from uwf_git.model.thread import Child, Split, ThreadState, TransitionRecord, add_usage
from uwf_git.store.objects.commit import CommitDraft, Signing, build_commit
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.record import (
    NewCommit,
    draft_next,
    read_standing,
    write_draft,
)
from uwf_git.store.threads.snapshot import Snapshot

_NOBODY = b"uwf <uwf@uwf>"
_JOINER = "uwf:join"
_MS = 1000
_ID_SYMBOLS = 26


class Branch(NamedTuple):
    """What one branch of a thread is to do."""

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


class Derived(NamedTuple):
    """A commit that follows from others, not yet written."""

    draft: CommitDraft
    new: NewCommit
    signing: Signing

    @property
    def oid(self) -> Oid:
        """The id of the commit."""
        return Oid(build_commit(self.draft, self.signing).id.decode())

    def write(self, store: Store) -> Oid:
        """Write the commit, and return its id; no ref moves."""
        return write_draft(store, self.draft, self.new, self.signing)


class SplitPlan(NamedTuple):
    """A split that is to be made."""

    at: str
    label: str
    branches: Sequence[Branch]
    nodes: tuple[Node, ...] = ()
    """The nodes that its branches refer to, and the thread may not have."""


def draft_split(tip: Snapshot, plan: SplitPlan) -> Derived:
    """Draft the commit that splits the thread at *tip*."""
    at, branches = plan.at, plan.branches
    date_ms = tip.commit.time_s * _MS
    nesting = tip.get_nesting() + 1
    starts = [
        _start_node(branch, tip.record.node, nesting=nesting, timestamp=date_ms)
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


def draft_start(
    split: Snapshot, number: int, branch: Branch, *, present: ThreadState | None = None
) -> Derived:
    """Draft the first commit of branch *number* of the thread that has *split*.

    *present* is the thread's state there, if the caller has read it.
    """
    present = present or split.get_present()
    if present.split is None:
        raise ValueError("the thread has no branches")  # a bug of the caller
    child = present.split.children[number]
    start = split.get_node(child.start)
    begun = begin_state(start, branch.own_state)
    if branch.entry is not None:
        begun = begun._replace(
            state={**present.state, **(branch.initial_state or {})}, visits=present.visits
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
        parent_thread=split.record.thread,
    )
    new = NewCommit(record, describe_branch(number, branch.label), begun, nodes=(start,))
    return _derive([split], new, is_own_start=True)


class Ending(NamedTuple):
    """What the branches of a thread came to, as the workflow has it."""

    label: str
    """The container's."""

    said: Sequence[tuple[str, str]]
    """The label of each branch, and what it said last."""

    meta: Any
    state: Mapping[str, Any]
    """The thread's state after the merge."""

    is_role: bool = False
    """The container is a role of a graph, which took its step so."""

    split: Snapshot | None = None
    """The commit at which the thread split; None if it is not known."""


def draft_join(tip: Snapshot, tips: Sequence[Snapshot], ending: Ending) -> Derived:
    """Draft the commit that joins the branches that ended at *tips*, in order."""
    date_ms = max(each.commit.time_s for each in (tip, *tips)) * _MS
    split = tip.get_present().split
    at = None if split is None else split.at
    content = "".join(f"{n} {name}: {words}\n" for n, (name, words) in enumerate(ending.said))
    text = build_node(TEXT, content, timestamp=date_ms)
    agent = build_node(AGENT_CONFIG, {"command": _JOINER}, timestamp=date_ms)
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
    date_s = max(parent.commit.time_s for parent in parents)
    signing = Signing(_NOBODY, _NOBODY, date_s * _MS)
    draft = draft_next(
        parents[0].objects, parents, new, is_own_start=is_own_start, grown_from=grown_from
    )
    return Derived(draft, new, signing)


def _start_node(branch: Branch, parent: NodeHash, *, nesting: int, timestamp: int) -> Node:
    payload: dict[str, Any] = {
        "workflow": reference(branch.workflow),
        "prompt": branch.prompt,
        "agentBinding": {role: reference(agent) for role, agent in branch.binding.items()},
    }
    if branch.initial_state is not None:
        payload["initialState"] = dict(branch.initial_state)
    payload |= {"parent": reference(parent), "depth": nesting}
    if branch.entry is not None:
        payload["entry"] = branch.entry
    return build_node(START, payload, timestamp=timestamp)


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
            more = count - inherited.get(role, 0)
            if more:
                visits[role] = visits.get(role, 0) + more
    return Joined(ending.state, usage, execution_ms, visits, ending.is_role)
