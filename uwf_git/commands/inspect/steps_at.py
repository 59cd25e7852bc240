"""How many steps each place of a flow took, from the commits of its thread."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from uwf_git.errors import StoreDamaged
from uwf_git.model.event_rules import STEPS
from uwf_git.model.position import NotAPosition, parse_position
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot


def count_steps_at(store: Store, tip: Oid, *, most: int) -> Counter[str]:
    """Return how many steps of a flow the agent at each place took, in joined branches too.

    That costs a look at each commit: nothing is returned of a thread with more than *most*. Those
    before damage are not counted, nor steps that were redone, nor those of other workflows.
    """
    positions: set[str] = set()
    seen: set[Oid] = set()
    pending = [tip]
    while pending:
        with suppress(StoreDamaged):
            for snapshot in _walk(store, pending.pop(), seen):
                if len(seen) > most:
                    return Counter()
                if snapshot.record.event == "join":
                    joined = (read_snapshot(store, oid) for oid in snapshot.commit.parents[1:])
                    pending += [each.commit.oid for each in joined if _is_within_flow(each)]
                elif snapshot.record.at is not None:
                    positions.add(snapshot.record.at)
    return Counter(place for place in map(_find_place, positions) if place is not None)


def _walk(store: Store, tip: Oid, seen: set[Oid]) -> Iterator[Snapshot]:
    """Yield joins, and steps that count, from *tip* back to where its flow began; add to *seen*."""
    redone = 0
    oid: Oid | None = tip
    while oid is not None and oid not in seen:
        seen.add(oid)
        snapshot = read_snapshot(store, oid)
        event = snapshot.record.event
        if event == "poke":
            redone += 1
        elif event in STEPS and redone:
            redone -= 1
        elif event in STEPS:
            yield snapshot
        goes_on = event != "start" or _is_within_flow(snapshot)
        oid = next(iter(snapshot.commit.parents), None) if goes_on else None


def _is_within_flow(snapshot: Snapshot) -> bool:
    """Check whether a thread is a branch that runs a part of its parent's flow."""
    return "entry" in snapshot.get_start().payload


def _find_place(at: str) -> str | None:
    try:
        return parse_position(at).place
    except NotAPosition:
        return None
