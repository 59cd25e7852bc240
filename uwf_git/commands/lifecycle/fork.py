"""`uwf thread fork`: begin a thread at a commit of another thread, and find that commit.

A fork point is named by a step's number, a step's hash, a commit or a role. It belongs to the
thread, to its origin, to a remote's copy, or to preserved work.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.turn.branches import find_source
from uwf_git.commands.turn.turn import existing_directory
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.builtin import STEP
from uwf_git.model.event_folds import Cause
from uwf_git.model.event_rules import STEPS
from uwf_git.model.names import NodeHash, ThreadId, fold
from uwf_git.model.node import Node
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.oid import Oid, is_oid
from uwf_git.store.remotes.remotes import list_remotes
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, create_head, get_head, resolve_thread
from uwf_git.store.threads.history import find_settings, list_preserved, release, walk_history
from uwf_git.store.threads.local_files import give_workdir
from uwf_git.store.threads.record import build_next, read_standing, record_next
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

_NUMBER = re.compile("[0-9]{1,6}")
_HEX = re.compile("[0-9a-f]{4,40}")
_SHORTEST_NODE = 4
_MOST_LISTED = 5
_NUMBERED = STEPS | {"start"}


def _no_such_step(thread: ThreadId, text: str) -> Refused:
    return Refused(
        f"thread {thread} has no step {text[:60]!r}",
        code="no-such-step",
        hint=f"name a step by its number or its hash (`uwf thread show {thread} --full`), or "
        "any commit of the thread",
        thread=thread,
        step=text[:60],
    )


def ambiguous_step(thread: ThreadId, text: str, matches: list[Oid]) -> Refused:
    shown = ", ".join(matches[:_MOST_LISTED])
    return Refused(
        f"{text!r} means {len(matches)} commits of thread {thread}: {shown}",
        code="ambiguous-step",
        hint="name the commit in full",
        thread=thread,
        matches=matches,
    )


def find_fork_point(store: Store, head: Head, text: str) -> Snapshot:
    """Return the commit that a step's number or hash, or a commit id, *text*, names."""
    if is_oid(text):
        return _find_commit(store, head, Oid(text))
    if _NUMBER.fullmatch(text):
        meant = _find_numbered(store, head, int(text))
    else:
        meant = [each for each in _candidates(store, head) if _is_meant(each, text)]
    matches = {each.commit.oid: each for each in meant}
    if not matches:
        raise _no_such_step(head.thread, text)
    if len(matches) > 1:
        raise ambiguous_step(head.thread, text, list(matches))
    return matches.popitem()[1]


def find_turn_of(store: Store, head: Head, role: str) -> Snapshot:
    """Return the commit at which the turn of the newest step of *role* began."""
    tip = read_snapshot(store, head.commit)
    step, acted = _find_step_of(tip, role)
    if step is None:
        known = list(parse_workflow(tip.get_node(tip.get_present().workflow)).roles)
        if role in known:
            message = f"role {role} has taken no step in thread {head.thread}"
            hint = f"steps were taken by {', '.join(acted) or 'no role yet'}"
        else:
            message = f"thread {head.thread} has no role {role[:60]!r}"
            hint = f"its roles are {', '.join(known)}"
        raise Refused(
            message,
            code="role-never-acted",
            hint=hint,
            thread=head.thread,
            role=role[:60],
            roles=known,
            acted=acted,
        )
    is_before = False
    for snapshot in walk_history(store, head.commit, through_forks=True):
        if is_before and snapshot.record.event != "attempt":
            return snapshot
        is_before |= snapshot.record.event in STEPS and snapshot.record.node == step.hash
    raise _no_such_step(head.thread, step.hash)


def _find_step_of(tip: Snapshot, role: str) -> tuple[Node | None, list[str]]:
    """Return the newest step of *role*; or else the roles that have taken steps."""
    acted: dict[str, None] = {}
    for node in tip.walk_chain():
        if node.type != STEP:
            break
        if node.payload["role"] == role:
            return node, []
        acted[node.payload["role"]] = None
    return None, sorted(acted)


def _find_numbered(store: Store, head: Head, number: int) -> list[Snapshot]:
    """Return the newest step of that number, and the preserved work of that number."""
    tip = read_snapshot(store, head.commit)
    history = walk_history(store, head.commit, through_forks=True)
    first = next((each for each in history if _has_number(each, number)), None)
    kept = [read_snapshot(store, oid) for oid in list_preserved(store, head.thread)]
    meant = [each for each in kept if _has_number(each, number)]
    is_there = first is not None and number <= tip.record.depth
    return [first, *meant] if first is not None and is_there else meant


def _has_number(snapshot: Snapshot, number: int) -> bool:
    return snapshot.record.event in _NUMBERED and snapshot.record.depth == number


def _find_commit(store: Store, head: Head, oid: Oid) -> Snapshot:
    try:
        snapshot = read_snapshot(store, oid)
    except StoreDamaged as error:
        # No such object, or one of another kind, such as a branch's commit.
        raise _no_such_step(head.thread, oid) from error
    if snapshot.record.thread == head.thread:
        return snapshot
    for each in _candidates(store, head):
        if each.commit.oid == oid:
            return each
    raise _no_such_step(head.thread, oid)


def _candidates(store: Store, head: Head) -> Iterator[Snapshot]:
    yield from walk_history(store, head.commit, through_forks=True)
    for oid in list_preserved(store, head.thread):
        yield read_snapshot(store, oid)


def _is_meant(snapshot: Snapshot, text: str) -> bool:
    record = snapshot.record
    if _HEX.fullmatch(text) and snapshot.commit.oid.startswith(text):
        return True
    is_node = len(text) >= _SHORTEST_NODE and record.node.startswith(fold(text))
    return record.event in _NUMBERED and is_node


class ForkRequest(NamedTuple):
    thread: str
    """A thread id or a unique prefix of an id."""

    at: str | None = None
    """A step's number or hash, or a commit; None: the thread's head."""

    from_role: str | None = None
    """Fork before the newest step of this role; replaces *at*."""

    reason: str = ""
    workdir: str | None = None
    """Where its agents run; None: the other thread's directory, or else the caller's."""


class Forked(NamedTuple):
    workflow: NodeHash
    thread: ThreadId
    head: NodeHash
    depth: int
    forked_from: ThreadId
    at: Oid

    follows: str | None = None
    """The remote whose history the forked thread adopted; None if it stays as it was."""


def fork_thread(store: Store, caller: Caller, request: ForkRequest, *, thread: ThreadId) -> Forked:
    """Begin *thread* at a commit of another thread.

    If the other thread has diverged from a remote and its local head is forked, that thread adopts
    the remote's history, also where both sides have ended; the fork keeps the local history.
    """
    head = get_head(store, resolve_thread(store, request.thread))
    point = find_point(store, head, request)
    source = find_source(store, read_snapshot(store, head.commit))
    workdir = existing_directory(request.workdir or source or caller.cwd, caller.cwd)
    cause = Cause(thread=thread, note=request.reason)
    new = build_next(read_standing(point), "fork", cause)
    commit = record_next(store, point, new, caller.signing(store))
    give_workdir(store, thread, workdir, known=find_settings(store, head.thread))
    create_head(store, thread, commit)
    release(store, head.thread, point.commit.oid)
    record, at = point.record, point.commit.oid
    follows = None
    if at == head.commit and list_remotes(store.config):
        # Imports all checks of verify, which only a store with remotes needs.
        from uwf_git.commands.lifecycle.adopt_remote import adopt_remote_history  # noqa: PLC0415 (see above)

        follows = adopt_remote_history(store, caller, head.thread, kept=at)
    return Forked(record.workflow, thread, record.node, record.depth, record.thread, at, follows)


def find_point(store: Store, head: Head, request: ForkRequest) -> Snapshot:
    if request.from_role is not None:
        return find_turn_of(store, head, request.from_role)
    if request.at is not None:
        return find_fork_point(store, head, request.at)
    return read_snapshot(store, head.commit)
