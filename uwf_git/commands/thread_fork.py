"""`uwf thread fork`: a new thread that goes on from any commit of another.

Owns: what the first commit of a fork says. Knows nothing of: how its next step is decided.
Always true: the history is shared and nothing is copied; the thread that is forked, archived or
not, stays as it is, unless it had gone two ways (give_way.py). Source: seed 003's fork.
"""

from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.find_workdir import existing_directory
from uwf_git.commands.fork_point import find_fork_point, find_turn_of
from uwf_git.engine.subject import count_steps
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.heads import Head, create_head, get_head, resolve_thread
from uwf_git.store.kept import let_go
from uwf_git.store.record import Transition, record_next
from uwf_git.store.refs import Oid
from uwf_git.store.remotes import list_remotes
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store
from uwf_git.store.workdirs import find_workdir, set_workdir


class ForkRequest(NamedTuple):
    """What is asked of a fork."""

    thread: str
    """An id, or a beginning that no other thread has."""

    at: str | None = None
    """A step's number or hash, or a commit; None is where the thread is now."""

    from_role: str | None = None
    """Whose newest step is to be taken again; it stands in the place of *at*."""

    reason: str = ""
    workdir: str | None = None
    """Where its agents run; None is where the other's do, or where the caller is if it has none."""


class Forked(NamedTuple):
    """A thread that begins on another."""

    workflow: NodeHash
    thread: ThreadId
    head: NodeHash
    depth: int
    forked_from: ThreadId
    at: Oid
    """The commit that both threads share."""

    follows: str | None = None
    """The remote as whose the forked thread goes on now; None if it is where it was."""


def fork_thread(store: Store, caller: Caller, request: ForkRequest, *, thread: ThreadId) -> Forked:
    """Begin the thread *thread* at a commit of another one.

    If the other had gone two ways, here and at a remote, and what is forked is where it is here,
    it follows the remote from then on: its own side is the fork's.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: no thread is meant.
        NoSuchStep, AmbiguousStep, RoleNeverActed: no commit of it is meant.
        NotADirectory: the work directory is not there.
        ThreadExists: the new id is taken.
    """
    head = get_head(store, resolve_thread(store, request.thread))
    point = _find_point(store, head, request)
    workdir = request.workdir or find_workdir(store, head.thread) or caller.cwd
    set_workdir(store, thread, existing_directory(workdir, caller.cwd))
    commit = record_next(store, point, _transition(point, thread, request), caller.signing(store))
    create_head(store, thread, commit)
    let_go(store, head.thread, point.commit.oid)
    record, at = point.record, point.commit.oid
    follows = None
    if at == head.commit and not head.archived and list_remotes(store.config):
        # It brings all the checks along, which only those who share need.
        from uwf_git.commands.give_way import give_way  # noqa: PLC0415 (see above)

        follows = give_way(store, caller, head.thread, kept=at)
    return Forked(record.workflow, thread, record.node, record.depth, record.thread, at, follows)


def _find_point(store: Store, head: Head, request: ForkRequest) -> Snapshot:
    if request.from_role is not None:
        return find_turn_of(store, head, request.from_role)
    if request.at is not None:
        return find_fork_point(store, head, request.at)
    return read_snapshot(store, head.commit)


def _transition(point: Snapshot, thread: ThreadId, request: ForkRequest) -> Transition:
    record = point.record
    return Transition(
        record=record._replace(
            thread=thread,
            event="fork",
            status="ready",
            role=None,
            agent=None,
            attempt=None,
            forked_from=record.thread,
            signal=None,
        ),
        said=f"from {record.thread} after {count_steps(record.depth)}",
        present=point.get_present().after_fork(),
        body=request.reason,
    )
