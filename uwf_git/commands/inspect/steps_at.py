"""How many steps each place of a flow took, from the commits of its thread."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from uwf_git.errors import StoreDamaged
from uwf_git.model.event_rules import STEPS
from uwf_git.model.flow import NotAPosition, parse_position
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot


class StepsAt(NamedTuple):
    """The steps that a thread and the branches that it joined took."""

    commits: frozenset[Oid] = frozenset()
    """Those that were looked at."""

    positions: frozenset[str] = frozenset()
    """Where in the flow the steps were taken; each has a position of its own."""

    by_place: Mapping[str, int] = MappingProxyType({})
    """How many steps each place of the flow took."""


_NOTHING = StepsAt()


def find_steps_at(store: Store, tip: Oid, *, most: int, before: StepsAt = _NOTHING) -> StepsAt:
    """Find the steps of the thread at *tip*, with those of joined branches.

    That costs a look at each commit, but for those *before*: of a branch those of its thread. Of
    more than *most* no step is told. Those before damage are left out, and so are steps that were
    redone, and those of other workflows.
    """
    seen, positions, by_place = set(before.commits), set(before.positions), Counter(before.by_place)
    pending = [tip]
    while pending:
        with suppress(StoreDamaged):
            for snapshot in _walk(store, pending.pop(), seen, most):
                if snapshot.record.event == "join":
                    joined = (read_snapshot(store, oid) for oid in snapshot.commit.parents[1:])
                    pending += [each.commit.oid for each in joined if _is_within_flow(each)]
                elif (at := snapshot.record.at) is not None and at not in positions:
                    positions.add(at)
                    by_place.update(_list_places(at))
    told = by_place if len(seen) <= most else Counter[str]()
    return StepsAt(frozenset(seen), frozenset(positions), told)


def _walk(store: Store, tip: Oid, seen: set[Oid], most: int) -> Iterator[Snapshot]:
    """Yield joins, and steps that count, from *tip* back to where its flow began.

    Each commit is added to *seen*, until these are more than *most*.
    """
    redone = 0
    oid: Oid | None = tip
    while oid is not None and oid not in seen and len(seen) <= most:
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


def _list_places(at: str) -> list[str]:
    """Return the place of a position; none if it is no position."""
    try:
        return [parse_position(at).place]
    except NotAPosition:
        return []
