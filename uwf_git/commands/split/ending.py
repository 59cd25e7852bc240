"""What the branches of a thread came to: the step that joins them, and the state after it.

Format: FORMAT.md, "Branches" and "State of a flow".
"""

from collections.abc import Sequence
from typing import Any

from uwf_git.commands.split.derived import Ending
from uwf_git.commands.split.plan import Container, SplitRefused, find_container
from uwf_git.engine.flow_merge import (
    Join,
    MergeConflict,
    Side,
    merge_map,
    merge_nothing,
    merge_parallel,
)
from uwf_git.engine.flow_state import fold_result, result_value
from uwf_git.model.event_rules import STEPS
from uwf_git.model.event_words import first_line
from uwf_git.model.names import ThreadId
from uwf_git.model.references import find_reference
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.objects.message import BadMessage
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.oid import Oid
from uwf_git.store.threads.message import parse_thread_message
from uwf_git.store.threads.snapshot import Snapshot

_KILLED = "killed"
# Behind these there is no split whose branches are still open.
_NO_SPLIT = frozenset({"start", "fork", "join"})


def plan_ending(tip: Snapshot, tips: Sequence[Snapshot]) -> Ending:
    """Return what the branches that ended at *tips* came to, for the thread at *tip*.

    Raises:
        MergeConflict: two of them changed the same part of the state.
        SplitRefused: the thread has no branches.
        StoreDamaged: a commit or node that it needs cannot be read.
    """
    present = tip.get_present()
    container = find_container(tip, "" if present.split is None else present.split.at)
    said = [(label_branch(container, n), _tell(container, each)) for n, each in enumerate(tips)]
    counting = _find_counting(container, tips)
    errors = [first_line(each.body) or _KILLED for each in tips if each.record.status == _KILLED]
    if container.policy.get("join") == "any" and counting:
        # The others were killed since one was enough.
        errors = []
    split = find_split(tip)
    state = _merge(tip, split, container, [(n, tips[n]) for n in counting], (len(tips), errors))
    branches = [{"status": each.record.status, "steps": each.record.depth} for each in tips]
    meta: Any = {"branches": branches}
    if container.kind == "workflow" and counting:
        meta = _read_result(tips[0])[0]
    return Ending(container.label, said, meta, state, container.flow is None, split)


def label_branch(container: Container, number: int) -> str:
    """Return the name of a branch for people: that of its node, or of the container."""
    if container.kind == "parallel" and container.flow is not None:
        return container.flow.nodes[f"{container.place}/{number}"].label
    return container.label


def find_split(tip: Snapshot) -> Snapshot:
    """Return the commit at which the thread at *tip* split; it has not joined since.

    Raises:
        SplitRefused: it has not split, or has joined.
        StoreDamaged: a commit on the way cannot be read.
    """
    at = tip
    while at.record.event != "split":
        if at.record.event in _NO_SPLIT or not at.commit.parents:
            raise SplitRefused(f"thread {tip.record.thread} has no branches")
        at = read_at(at.objects, at.commit.parents[0])
    return at


def read_at(objects: ObjectStore, oid: Oid) -> Snapshot:
    """Read the thread commit *oid*.

    Raises:
        StoreDamaged, BadMessage: it is not a thread commit.
    """
    commit = read_commit(objects, oid)
    try:
        return Snapshot(objects, commit, parse_thread_message(commit.message))
    except BadMessage as error:
        raise error.of_commit(oid) from error


def _find_counting(container: Container, tips: Sequence[Snapshot]) -> list[int]:
    """Return the numbers of the branches whose state counts, in order."""
    completed = [n for n, each in enumerate(tips) if each.record.status == "completed"]
    if container.policy.get("join") == "any" and completed:
        return [min(completed, key=lambda n: (tips[n].commit.time_s, n))]
    return completed


def _merge(
    tip: Snapshot,
    split: Snapshot,
    container: Container,
    counting: Sequence[tuple[int, Snapshot]],
    rest: tuple[int, Sequence[str]],
) -> dict[str, Any]:
    """Return the state after the join; *rest* is the number of branches, and the errors."""
    count, errors = rest
    ours = tip.get_present().state
    if container.kind == "workflow" and container.node is not None and counting:
        meta, content = _read_result(counting[0][1])
        return fold_result(ours, meta=meta, content=content, output=container.node.output)
    sides = [Side(n, label_branch(container, n), each.get_present().state) for n, each in counting]
    join = Join(split.get_present().state, ours, sides, errors)
    if container.kind == "workflow" or container.node is None:
        merged = merge_nothing(join)
    elif container.kind == "parallel":
        merged = merge_parallel(join, container.node)
    else:
        results: list[Any] = [None] * count
        for n, each in counting:
            results[n] = result_value(*_read_result(each))
        merged = merge_map(join, container.node, results)
    if merged.conflicts:
        raise MergeConflict(tip.record.thread, container.label, merged.conflicts)
    return merged.state


def _read_result(tip: Snapshot) -> tuple[Any, str]:
    """Return meta and content of the newest step of a branch; None and nothing if it has none."""
    head = tip.get_head_node()
    content = find_reference(head.payload.get("content")) if tip.record.depth else None
    if content is None:
        return None, ""
    return head.payload["meta"], str(tip.get_node(content).payload)


def name_work(thread: ThreadId) -> str:
    """Return the ref of the work of a branch that works apart, in the user's repository."""
    return f"refs/uwf/work/{thread}"


def _tell(container: Container, tip: Snapshot) -> str:
    """Return what a branch said last, and where its work is if it worked apart."""
    said = _find_said(tip)
    is_apart = container.policy.get("isolation") is not None
    return f"{said} ({name_work(tip.record.thread)})" if is_apart else said


def _find_said(tip: Snapshot) -> str:
    """Return what the newest step of a branch said, without its role."""
    at = tip
    while at.record.depth and not (at.record.event in STEPS and at.record.node == tip.record.node):
        at = read_at(at.objects, at.commit.parents[0])
    return at.subject.partition(": ")[2] if at.record.depth else "no step"
