"""Threads with every kind of container, run to their ends by uwf: what forgers begin with."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from commands.flows import CHECKS
from commands.world import World, fails, make_world, replied
from seal import START_MS

from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.step.step_thread import list_leaves
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.history import Snapshot, read_snapshot

INNER = """\
name: inner
roles:
  digger: {description: Digs., outputSchema: {type: object}}
root:
  type: sequential
  nodes:
    - {type: agent, agentId: digger}
    - {type: agent, agentId: filler}
"""

_AROUND = """\
name: %s
root:
  type: sequential
  nodes:
    - {type: agent, agentId: coder, output: code}
    - %s
    - {type: agent, agentId: closer, output: done}
"""
_PARALLEL = "{type: parallel, name: checks, %snodes: [%s]}"
_AGENTS = ", ".join(
    f"{{type: agent, agentId: {name}, output: {name}}}" for name in ("one", "two", "three")
)
_LONG = "{type: sequential, nodes: [{type: agent, agentId: one}, {type: agent, agentId: two}]}"
_MAP = "{type: map, name: each, over: state.files, as: file, output: reports, %snodes: [%s]}"

SOURCES: Mapping[str, str] = {
    "parallel": CHECKS.replace("name: checks\ndesc", "name: parallel\ndesc"),
    "map": _AROUND % ("map", _MAP % ("", "{type: agent, agentId: reader}")),
    "any": _AROUND % ("any", _PARALLEL % ("join: any, ", _LONG + ", " + _AGENTS)),
    "continue": _AROUND
    % ("continue", _PARALLEL % ("onError: continue, ", _AGENTS.replace("two", "broken"))),
    "workflow": _AROUND
    % ("workflow", '{type: workflow, name: whole, use: inner, input: "dig ${state.n}", output: o}'),
    "nested": _AROUND
    % ("nested", _MAP % ("merge: append, ", _PARALLEL % ("", _AGENTS) + ", " + _LONG)),
    "loop": _AROUND
    % ("loop", "{type: loop, maxIterations: 2, nodes: [%s]}" % (_PARALLEL % ("", _AGENTS))),
    "graph": """\
name: graph
roles:
  coder: {description: Codes.}
  builder: {description: Builds., workflow: inner}
moderator:
  - {from: $START, to: coder}
  - {from: coder, to: builder}
  - {from: builder, to: $END}
""",
    "isolated": _AROUND % ("isolated", _PARALLEL % ("isolation: worktree, ", _AGENTS)),
}
"""The workflows, by what splits in them."""


def play(turn: Turn) -> Played:
    """Play each role of these workflows."""
    if turn.role == "broken":
        return fails("no luck")(turn)
    if turn.role == "coder":
        return replied({"files": ["a", "b"], "n": 7}, "Coded.")
    return replied({f"{turn.role}_done": True}, f"{turn.role}: done.")


def other(turn: Turn) -> Played:
    """Play each role otherwise."""
    return replied({f"{turn.role}_done": False}, f"{turn.role}: not done.")


Refs = Mapping[str, Oid]


@dataclass(frozen=True)
class Told:
    """A store with two threads of one workflow that have ended, and the first one's stages."""

    name: str
    """That of its workflow."""

    world: World
    thread: ThreadId
    twin: ThreadId
    begun: Refs
    """Refs when the thread had split, and its branches had begun."""

    joined: Refs
    """Refs when it had joined them."""

    def copy(self, place: Path, refs: Refs | None = None) -> "Told":
        """Return the same in a store of its own at *place*, where only *refs* are, if given."""
        path = str(place / "store.git")
        shutil.copytree(self.world.store.path, path)
        if refs is not None:
            set_refs(path, refs)
        return replace(self, world=replace(self.world, store=open_store(path, environ=os.environ)))

    def at(self, oid: str) -> Snapshot:
        """Read a commit."""
        return read_snapshot(self.world.store, Oid(oid))

    @property
    def branches(self) -> list[ThreadId]:
        """The branches of the first split."""
        found = self.at(self.begun[f"refs/threads/{self.thread}"]).get_present().split
        return [child.thread for child in found.children] if found else []


def refs_of(store: Store) -> dict[str, Oid]:
    """Return the refs of threads."""
    found: dict[str, Oid] = {}
    for folder in ("refs/threads/", "refs/archive/"):
        for name in store.refs.names(folder):
            oid = store.refs.find(folder + name)
            assert oid is not None
            found[folder + name] = oid
    return found


def set_refs(path: str, refs: Mapping[str, str]) -> None:
    """Let the store at *path* have these refs of threads and no others, by plain git."""
    listed = ["for-each-ref", "--format=delete %(refname)", "refs/threads", "refs/archive"]
    gone = git(*listed, cwd=path).splitlines()
    git("update-ref", "--stdin", cwd=path, stdin="".join(f"{line}\n" for line in gone))
    lines = "".join(f"create {name} {oid}\n" for name, oid in refs.items())
    git("update-ref", "--stdin", cwd=path, stdin=lines)


def git(*words: str, cwd: str | Path, stdin: str = "", check: bool = True) -> str:
    """Run git, and return what it prints, its errors too if it may fail."""
    command = ["git", *words]
    ran = subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, text=True, check=check)
    return ran.stdout if check else ran.stdout + ran.stderr


def run_until(world: World, thread: ThreadId, player: Player, *statuses: str) -> None:
    """Take steps of a thread and its branches until it has one of these statuses."""
    for _ in range(40):
        with suppress(TurnFailed):
            world.step(thread, player, command="nobody", workdir=str(world.place))
        if world.snapshot(thread).record.status in statuses:
            return
    raise AssertionError(world.snapshot(thread).subject)


def tell(place: Path, name: str) -> Told:
    """Run two threads of a workflow to their ends, in a new store at *place*."""
    ids = (ThreadId(f"01J000{number:020d}") for number in count(1))
    world = make_world(place, count(START_MS, 1000).__next__, ids.__next__)
    git("init", "--quiet", cwd=world.place)
    git("commit", "--quiet", "--allow-empty", "-m", "begun", cwd=world.place)
    if "inner" in SOURCES[name]:
        world.put(INNER)
    thread = world.begun(SOURCES[name])
    run_until(world, thread, play, "split")
    list(list_leaves(world.store, world.snapshot(thread)))
    begun = refs_of(world.store)
    run_until(world, thread, play, "ready")
    joined = refs_of(world.store)
    twin = world.start(workflow=name)
    for each in (thread, twin):
        run_until(world, each, play, "completed")
    git("repack", "-a", "-d", "-q", cwd=world.store.path)
    world.reopen()
    return Told(name, world, thread, twin, begun, joined)
