"""Threads of a flow at each stage: before its split, split, at work in branches, joined."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands.forging import add
from commands.world import World, replied
from dulwich.objects import Commit, ObjectID, ShaFile

from uwf_git.commands.receive import check_received
from uwf_git.commands.remote.push_plan import with_branches
from uwf_git.commands.step.step_thread import list_leaves
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.verify.thread import check_thread
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.git.hook_files import RefUpdate
from uwf_git.store.objects.objects import ObjectStore, disk_places
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import Head, advance_head, get_head
from uwf_git.store.threads.history import Snapshot, read_snapshot

CHECKS = """\
name: checks
description: Several at once.
root:
  type: sequential
  nodes:
    - {type: agent, agentId: coder, output: code}
    - type: parallel
      name: checks
      nodes:
        - {type: agent, agentId: reviewer, output: review}
        - {type: agent, agentId: tester, output: tests}
    - {type: agent, agentId: closer, output: done}
"""

FILES = """\
name: files
description: A branch for each.
root:
  type: sequential
  nodes:
    - {type: agent, agentId: lister}
    - type: map
      name: each
      over: state.files
      as: file
      output: reports
      nodes:
        - {type: agent, agentId: reader}
        - {type: agent, agentId: writer}
"""


def begin_outer(world: World) -> ThreadId:
    """Begin a thread of a graph whose first role a workflow plays."""
    world.put("name: inner\nroot: {type: agent, agentId: digger}\n")
    return world.begun(
        "name: outer\nroles:\n  builder: {description: Builds., workflow: inner}\nmoderator:\n"
        "  - {from: $START, to: builder}\n  - {from: builder, to: $END}\n"
    )


def plays(turn: Turn) -> Played:
    """Play each role of these flows; a reader says which file it has read."""
    state = turn.present.state
    if turn.role == "reader":
        return replied({}, f"read {state['file']}")
    return replied({f"{turn.role}_done": True}, "Done.")


def lists(count: int) -> dict[str, list[str]]:
    """Return what the lister of `files` says for so many branches."""
    return {"files": [f"file-{number}" for number in range(count)]}


@dataclass(slots=True)
class Split:
    """A thread that has split, and what follows."""

    world: World
    thread: ThreadId

    @property
    def tip(self) -> Snapshot:
        """The thread."""
        return self.world.snapshot(self.thread)

    @property
    def children(self) -> list[ThreadId]:
        """Its branches."""
        found = self.tip.get_present().split
        assert found is not None
        return [child.thread for child in found.children]

    @property
    def joined(self) -> list[ThreadId]:
        """The branches that its newest commit has joined."""
        ends = self.tip.commit.parents[1:]
        return [read_snapshot(self.world.store, oid).record.thread for oid in ends]

    def step(self) -> str:
        """Take a step, and return the status."""
        return self.world.step(self.thread, plays).status

    def finish_branches(self) -> list[Snapshot]:
        """Step all branches to their ends, join nothing, and return their ends."""
        children = self.children
        for child in children:
            finish(self.world, child)
        return [self.world.snapshot(child) for child in children]


def split_checks(world: World, source: str = CHECKS) -> Split:
    """Return a thread of `checks` that has split, with branches that have begun."""
    return _until_begun(world, world.begun(source))


def split_files(world: World, count: int) -> Split:
    """Return a thread of `files` that has split into *count* branches, which have begun."""
    return _until_begun(world, world.stepped(lambda _turn: replied(lists(count)), source=FILES))


def _until_begun(world: World, thread: ThreadId) -> Split:
    while world.snapshot(thread).record.status != "split":
        world.step(thread, plays)
    list(list_leaves(world.store, world.snapshot(thread)))
    return Split(world, thread)


def finish(world: World, thread: ThreadId) -> Snapshot:
    """Step a thread to its end."""
    return world.finish(thread, plays)


def tell(store: Store, thread: ThreadId, tip: Oid, *, archived: bool = False) -> list[str]:
    """Return what is wrong with the history of a thread."""
    return [each.message for each in check_thread(store, thread, tip, archived=archived)]


def move(world: World, thread: ThreadId, to: Oid) -> Snapshot:
    """Move an active thread to another commit."""
    head = get_head(world.store, thread)
    advance_head(world.store, Head(thread, head.commit, archived=False), to)
    return read_snapshot(world.store, to)


def copy_commit(store: Store, oid: Oid) -> Commit:
    """Return a copy of a commit to change."""
    commit = store.objects[ObjectID(oid.encode())].copy()
    assert isinstance(commit, Commit)
    return commit


def put(store: Store, commit: Commit) -> Oid:
    """Write a commit."""
    return Oid(add(store, commit).decode())


class CountingObjects:
    """An object store that counts what is read from it."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self.places = list(disk_places(objects))
        self.count = 0

    def __contains__(self, oid: ObjectID) -> bool:
        return oid in self._objects

    def __getitem__(self, oid: ObjectID) -> ShaFile:
        self.count += 1
        return self._objects[oid]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objects, name)

    def get_raw(self, name: ObjectID) -> tuple[int, bytes]:
        """Count, and read."""
        self.count += 1
        return self._objects.get_raw(name)

    def add_objects(self, objects: Iterable[tuple[ShaFile, str | None]]) -> object:
        """Write the objects."""
        return self._objects.add_objects(objects)


LINE = """\
name: line
description: One after the other.
root:
  type: loop
  maxIterations: COUNT
  nodes:
    - {type: agent, agentId: coder}
"""


def push_costs(world: World, hub: Path, count: int) -> tuple[int, int]:
    """Return how many objects a hub reads of *count* branches, and of one thread of these steps."""
    thread = world.stepped(lambda _turn: replied(lists(count)), source=FILES)
    finish(world, thread)
    alone = world.begun(LINE.replace("COUNT", str(2 * count)))
    finish(world, alone)
    branches = with_branches(world.store, [thread])
    assert len(branches) == 1 + count
    many, one = _count_reads(world, hub, branches), _count_reads(world, hub, [alone])
    print(f"{many} objects are read, and of one thread {one}")  # noqa: T201 - for `pytest -rA`
    return many, one


def _count_reads(world: World, hub: Path, threads: list[ThreadId]) -> int:
    counting = CountingObjects(world.store.objects)
    tips = {f"refs/archive/{each}": world.tip(each) for each in threads}
    updates = [RefUpdate(ref, None, tip) for ref, tip in tips.items()]
    assert check_received(open_store(str(hub))._replace(objects=counting), updates) == []
    return counting.count
