"""Fork points: which commit of a thread is meant.

Owns: the ways to name one: a step's number, a commit, a step's node, a role whose turn it was.
Knows nothing of: what is done there.
Always true: what is found belongs to the thread, to one that it was forked from, or to another
copy of it (a remote's, or work that was kept because the thread had moved on).
"""

import re
from collections.abc import Iterator

from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.builtin import STEP
from uwf_git.model.crockford import fold
from uwf_git.model.node import Node
from uwf_git.model.thread import STEPS
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.heads import Head
from uwf_git.store.history import walk_history
from uwf_git.store.kept import list_kept
from uwf_git.store.refs import Oid, is_oid
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store

_NUMBER = re.compile("[0-9]{1,6}")
_HEX = re.compile("[0-9a-f]{4,40}")
_SHORTEST_NODE = 4
_MOST_LISTED = 5
_NUMBERED = STEPS | {"start"}


class NoSuchStep(Refused):
    """The thread has no such commit or step."""

    code = "no-such-step"

    def __init__(self, thread: ThreadId, text: str) -> None:
        super().__init__(
            f"thread {thread} has no step {text[:60]!r}",
            hint=f"name a step by its number or its hash (`uwf thread show {thread} --full`), or "
            "any commit of the thread",
            thread=thread,
            step=text[:60],
        )


class AmbiguousStep(Refused):
    """Several commits are meant."""

    code = "ambiguous-step"

    def __init__(self, thread: ThreadId, text: str, matches: list[Oid]) -> None:
        shown = ", ".join(matches[:_MOST_LISTED])
        super().__init__(
            f"{text!r} means {len(matches)} commits of thread {thread}: {shown}",
            hint="name the commit in full",
            thread=thread,
            matches=matches,
        )


class RoleNeverActed(Refused):
    """The thread has no step of this role."""

    code = "role-never-acted"

    def __init__(self, thread: ThreadId, role: str, *, known: list[str], acted: list[str]) -> None:
        if role in known:
            message = f"role {role} has taken no step in thread {thread}"
            hint = f"steps were taken by {', '.join(acted) or 'nobody yet'}"
        else:
            message = f"thread {thread} has no role {role[:60]!r}"
            hint = f"its roles are {', '.join(known)}"
        super().__init__(
            message,
            hint=hint,
            thread=thread,
            role=role[:60],
            roles=known,
            acted=acted,
        )


def find_fork_point(store: Store, head: Head, text: str) -> Snapshot:
    """Find the commit that *text* means: a step's number, a step's hash, or a commit's id.

    Hashes and ids may be shortened. Number 0 is the start; a failed try has its step's number
    only until a step succeeds, and is named by its commit.

    Raises:
        NoSuchStep, AmbiguousStep: none is meant, or several.
        StoreDamaged: the history cannot be read.
    """
    if is_oid(text):
        return _find_commit(store, head, Oid(text))
    if _NUMBER.fullmatch(text):
        meant = _find_numbered(store, head, int(text))
    else:
        meant = [each for each in _candidates(store, head) if _is_meant(each, text)]
    matches = {each.commit.oid: each for each in meant}
    if not matches:
        raise NoSuchStep(head.thread, text)
    if len(matches) > 1:
        raise AmbiguousStep(head.thread, text, list(matches))
    return matches.popitem()[1]


def find_turn_of(store: Store, head: Head, role: str) -> Snapshot:
    """Find the commit before the newest step of *role*, after which its turn comes again.

    Failed tries of that turn are left behind as well: whoever goes on from there has all of his
    own. What was patched or amended before the step stays in force.

    Raises:
        RoleNeverActed: there is no such step.
        StoreDamaged: the history cannot be read.
    """
    tip = read_snapshot(store, head.commit)
    step, acted = _find_step_of(tip, role)
    if step is None:
        known = list(parse_workflow(tip.get_node(tip.get_present().workflow)).roles)
        raise RoleNeverActed(head.thread, role, known=known, acted=acted)
    is_before = False
    for snapshot in walk_history(store, head.commit, through_forks=True):
        if is_before and snapshot.record.event != "attempt":
            return snapshot
        is_before |= snapshot.record.event in STEPS and snapshot.record.node == step.hash
    raise NoSuchStep(head.thread, step.hash)


def _find_step_of(tip: Snapshot, role: str) -> tuple[Node | None, list[str]]:
    """Give the newest step of *role*, and who else has taken steps before it was found."""
    acted: dict[str, None] = {}
    for node in tip.walk_chain():
        if node.type != STEP:
            break
        if node.payload["role"] == role:
            return node, []
        acted[node.payload["role"]] = None
    return None, sorted(acted)


def _find_numbered(store: Store, head: Head, number: int) -> list[Snapshot]:
    """Give the step of that number, and what was kept beside it.

    The newest of several counts: the others were taken back by a poke.
    """
    tip = read_snapshot(store, head.commit)
    history = walk_history(store, head.commit, through_forks=True)
    first = next((each for each in history if _has_number(each, number)), None)
    kept = [read_snapshot(store, oid) for oid in list_kept(store, head.thread)]
    meant = [each for each in kept if _has_number(each, number)]
    is_there = first is not None and number <= tip.record.depth
    return [first, *meant] if first is not None and is_there else meant


def _has_number(snapshot: Snapshot, number: int) -> bool:
    return snapshot.record.event in _NUMBERED and snapshot.record.depth == number


def _find_commit(store: Store, head: Head, oid: Oid) -> Snapshot:
    try:
        snapshot = read_snapshot(store, oid)
    except StoreDamaged as error:
        # Another object of the repository, as a branch's commit, or none.
        raise NoSuchStep(head.thread, oid) from error
    if snapshot.record.thread == head.thread:
        return snapshot
    for each in _candidates(store, head):
        if each.commit.oid == oid:
            return each
    raise NoSuchStep(head.thread, oid)


def _candidates(store: Store, head: Head) -> Iterator[Snapshot]:
    yield from walk_history(store, head.commit, through_forks=True)
    for oid in list_kept(store, head.thread):
        yield read_snapshot(store, oid)


def _is_meant(snapshot: Snapshot, text: str) -> bool:
    record = snapshot.record
    if _HEX.fullmatch(text) and snapshot.commit.oid.startswith(text):
        return True
    is_node = len(text) >= _SHORTEST_NODE and record.node.startswith(fold(text))
    return record.event in _NUMBERED and is_node
