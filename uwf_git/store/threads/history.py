"""Walk the commits of a thread, newest first, along first parents."""

import re
from collections.abc import Iterator

from uwf_git.store.objects.commit import CommitView, read_commit
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

# The lines of a body are indented, so this is a trailer.
_EVENT = re.compile(rb"\nUwf-Event: ([^\n]*)\n")
_WORKFLOW = re.compile(rb"\nUwf-Workflow: ([^\n]*)\n")

_MOST_STARTS = 1000
_STARTS: dict[Oid, Oid] = {}
"""Where turns began, by control commits from which that was found: a step asks several times."""


def walk_history(store: Store, tip: Oid, *, through_forks: bool = False) -> Iterator[Snapshot]:
    """Yield the snapshots of a thread from *tip* back to its ``start`` or ``fork`` commit.

    With *through_forks* the walk goes on into the thread that was forked.

    Raises:
        DamagedCommit, BadMessage: the history is broken there.
    """
    oid: Oid | None = tip
    while oid is not None:
        snapshot = read_snapshot(store, oid)
        yield snapshot
        event = snapshot.record.event
        if event == "start" or (event == "fork" and not through_forks):
            return
        oid = next(iter(snapshot.commit.parents), None)


def find_turn_start(store: Store, snapshot: Snapshot) -> Oid:
    """Return the commit after which the turn that *snapshot* is at began.

    That is the snapshot's own commit, unless it only controlled the thread (``pause``, ``patch``):
    an agent that is at work meanwhile stays in the same turn.
    """
    from uwf_git.model.event_rules import CONTROLS  # noqa: PLC0415 (the rules; readers need none)

    view = snapshot.commit
    event: str = snapshot.record.event
    while event in CONTROLS and view.parents and view.oid not in _STARTS:
        before = read_commit(store.objects, view.parents[0])
        if _find(_WORKFLOW, before) != _find(_WORKFLOW, view):
            # A change of the workflow begins another turn.
            break
        view, event = before, _find(_EVENT, before)
    start = _STARTS.get(view.oid, view.oid)
    if start != snapshot.commit.oid:
        if len(_STARTS) >= _MOST_STARTS:
            _STARTS.clear()
        _STARTS[snapshot.commit.oid] = start
    return start


def _find(trailer: re.Pattern[bytes], commit: CommitView) -> str:
    """Return the value of a trailer without parsing the others: there may be 100,000 commits."""
    found = trailer.search(commit.message)
    return "" if found is None else found[1].decode(errors="replace")
