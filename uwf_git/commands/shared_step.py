"""Common steps: up to where two threads are the same, and what each did after that.

Owns: finding the step at which two chains meet, and the commit that both threads share.
Knows nothing of: what differs after that.
Always true: the chain of StepNodes decides (a poke goes back along it); the commits only tell
whether that is one history or the same thing done twice; only what lies after the meeting point
is read of the chains.
"""

from collections.abc import Iterator
from typing import NamedTuple

from uwf_git.model.builtin import STEP
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.store.commit import read_commit
from uwf_git.store.objects import ObjectStore
from uwf_git.store.refs import Oid
from uwf_git.store.snapshot import Snapshot


class Parted(NamedTuple):
    """Two chains, from where they part."""

    one: list[Node]
    """The StepNodes that only the one has, oldest first."""

    other: list[Node]

    node: NodeHash | None
    """The newest node that both have, which may be the StartNode; None if they share none."""

    depth: int
    """How many steps both have."""


def part_chains(one: Snapshot, other: Snapshot) -> Parted:
    """Follow the chains of two threads back to where they meet.

    Raises:
        MissingNode, DamagedNode, DamagedCommit: a chain is broken on the way.
    """
    chains = (one.walk_chain(), other.walk_chain())
    depths = [one.record.depth, other.record.depth]
    parts: tuple[list[Node], list[Node]] = ([], [])
    newest = [next(chain) for chain in chains]
    while newest[0].hash != newest[1].hash:
        # The longer one goes back; both, where they are of a length.
        going = [side for side in (0, 1) if depths[side] == max(depths)]
        if any(newest[side].type != STEP for side in going):
            going = [side for side in (0, 1) if newest[side].type == STEP]
        if not going:
            return _parted(parts, None, 0)
        for side in going:
            parts[side].append(newest[side])
            newest[side] = next(chains[side])
            depths[side] -= 1
    return _parted(parts, newest[0].hash, max(depths[0], 0))


def _parted(parts: tuple[list[Node], list[Node]], node: NodeHash | None, depth: int) -> Parted:
    for part in parts:
        part.reverse()
    return Parted(parts[0], parts[1], node, depth)


def find_shared_commit(objects: ObjectStore, one: Oid, other: Oid) -> Oid | None:
    """Find the newest commit that is in the histories of both, along first parents.

    Raises:
        DamagedCommit: a commit on the way is missing, or none.
    """
    walks = (_walk(objects, one), _walk(objects, other))
    seen: tuple[set[Oid], set[Oid]] = (set(), set())
    # Side by side, so that it costs no more than how far they went.
    open_sides = [0, 1]
    while open_sides:
        for side in tuple(open_sides):
            oid = next(walks[side], None)
            if oid is None:
                open_sides.remove(side)
                continue
            if oid in seen[1 - side]:
                return oid
            seen[side].add(oid)
    return None


def _walk(objects: ObjectStore, tip: Oid) -> Iterator[Oid]:
    oid: Oid | None = tip
    while oid is not None:
        yield oid
        oid = next(iter(read_commit(objects, oid).parents), None)
