"""The environment, stores, threads and agent of a benchmark run, in a temporary directory.

Nothing outside the directory is written, and the directory is removed at the end.
"""

import itertools
import os
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from bench.timing import Case, Sample

from uwf_git.agents.command_line import AgentReply
from uwf_git.commands.caller import Caller
from uwf_git.commands.start import StartRequest, start_thread
from uwf_git.commands.step.step_thread import StepRequest, step_thread
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.definition.definition import Definition, RoleDefinition
from uwf_git.model.names import ThreadId
from uwf_git.model.node import Node
from uwf_git.model.workflow import START, Transition, build_workflow
from uwf_git.store.git.config import set_config
from uwf_git.store.packing import has_many_packs
from uwf_git.store.store import Store, create_store, open_store
from uwf_git.store.threads.heads import ACTIVE, get_head
from uwf_git.store.threads.history import Snapshot, read_snapshot
from uwf_git.store.tidy import unite_packs
from uwf_git.store.workflows import SourceFiles, add_version

ENDLESS = "endless"
"""A workflow that never ends and asks no condition, so that a thread of any depth is built fast."""

ASKS_META, ASKS_HISTORY = "asks-meta", "asks-history"
"""Positions of its graph that no thread comes to, for asking what a decision there costs."""

_AGENT = """\
#!/bin/sh
printf '{"meta":{"n":1}}'
"""

_FOREIGN = ("COVERAGE", "GIT_", "PYTHON", "UWF_", "XDG_")

_counted = itertools.count(1)


class World(NamedTuple):
    """Where a run takes place."""

    root: str
    environ: Mapping[str, str]
    caller: Caller

    @property
    def agent(self) -> str:
        """The command of an agent that does next to nothing."""
        return self.path("agent")

    def path(self, *parts: str) -> str:
        """Return a path in the directory."""
        return os.path.join(self.root, *parts)

    def write(self, name: str, text: str) -> str:
        """Write a file that can be run as well; return its path."""
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def configured(self, setting: str) -> Mapping[str, str]:
        """Return the environment with a *setting* of uwf."""
        path = self.write(f"{setting}.gitconfig", f"[uwf]\n\t{setting}\n")
        return {**self.environ, "GIT_CONFIG_GLOBAL": path}


class Thread(NamedTuple):
    """A thread that is stepped, and the store that it is in."""

    store: Store
    caller: Caller
    id: ThreadId

    def step(self, *, trust: bool = False) -> None:
        """Take a step whose player does nothing; *trust* its agent from now on."""
        step_thread(self.store, self.caller, StepRequest(self.id, play_once, Choice(trust=trust)))
        self.unite()

    def unite(self) -> None:
        """Unite small packs if that is due, as every command does."""
        if has_many_packs(self.store.path):
            unite_packs(self.store)

    def snapshot(self) -> Snapshot:
        """Read its tip."""
        return read_snapshot(self.store, get_head(self.store, self.id).commit)

    def in_place(self, case: Case) -> Case:
        """Return *case*, after each turn of which the thread is put back."""

        def turn() -> Sample:
            with self.kept_in_place():
                return case()

        return turn

    @contextmanager
    def kept_in_place(self) -> Iterator[None]:
        """Put the thread back where it was, so that each turn starts at the same depth.

        The objects stay behind, as those of any step that was lost.
        """
        before = get_head(self.store, self.id)
        try:
            yield
        finally:
            after = get_head(self.store, self.id)
            if after != before:
                self.store.refs.advance(ACTIVE + self.id, seen=after.commit, to=before.commit)


@contextmanager
def open_world() -> Iterator[World]:
    """Make the directory, stand in it, and remove it at the end."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="uwf-bench-") as root:
        home, work = os.path.join(root, "home"), os.path.join(root, "work")
        os.mkdir(home)
        os.mkdir(work)
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)
        }
        own = {"HOME": home, "USER": "bench", "LC_ALL": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1"}
        environ = inherited | own
        world = World(root, environ, Caller(_now_ms, environ, work))
        world.write("agent", _AGENT)
        os.chdir(work)
        try:
            yield world
        finally:
            os.chdir(before)


def find_program(name: str) -> str:
    """Return the path of a program of the installed package."""
    return os.path.join(sysconfig.get_path("scripts"), name)


def make_store(world: World, name: str, *, fsync: bool) -> Store:
    """Make a bare repository in the directory."""
    path = world.path(f"{name}.git")
    create_store(path, environ=world.environ)
    return reopen_store(world, path, fsync=fsync)


def reopen_store(world: World, path: str, *, fsync: bool) -> Store:
    """Open a store after setting whether it uses fsync."""
    set_config(os.path.join(path, "config"), "uwf.fsync", str(fsync).lower())
    return open_store(path, environ=world.environ)


def begin_thread(
    world: World, store: Store, workflow: str, *, agent: str | None = None, cwd: str | None = None
) -> Thread:
    """Start a thread of a workflow that the store has, by default with the agent of the world."""
    thread = ThreadId(f"01J{next(_counted):023}")
    caller = world.caller if cwd is None else world.caller._replace(cwd=cwd)
    request = StartRequest(workflow, "Go on.", (agent or world.agent,))
    start_thread(store, caller, request, thread=thread)
    return Thread(store, caller, thread)


def begin_endless(
    world: World, store: Store, *, agent: str | None = None, cwd: str | None = None
) -> Thread:
    """Start a thread that can be stepped for ever; *agent* and *cwd* are as above.

    No file can say such a workflow, for every one must lead to an end; so it is made of nodes.
    """
    graph = {
        START: (Transition("worker", None),),
        "worker": (Transition("worker", None),),
        ASKS_META: (Transition("worker", "meta.n >= 0"),),
        ASKS_HISTORY: (Transition("worker", "$count(history) >= 0"),),
    }
    added = (ENDLESS, *build_nodes(ENDLESS, graph))
    signing = world.caller.signing(store)
    add_version(store, None, added=added, source=SourceFiles(b""), signing=signing)
    return begin_thread(world, store, ENDLESS, agent=agent, cwd=cwd)


def build_nodes(name: str, graph: Mapping[str, tuple[Transition, ...]]) -> tuple[Node, list[Node]]:
    """Build a workflow with the role `worker`, and the nodes that it needs."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    definition = Definition(
        name=name,
        description="Goes on and on",
        roles={"worker": RoleDefinition("worker", "Works", "Work.", None, schema)},
        graph=graph,
        default_agent=None,
        agent_overrides={},
        initial_state=None,
    )
    return build_workflow(definition, timestamp=0)


def play_once(turn: Turn) -> Played:
    """Play a turn: a line of text, and a number that no other turn has."""
    number = next(_counted)
    text = f"Step {number}: looked at one file, changed one line, and all tests pass.\n"
    reply = AgentReply(meta={"n": number}, content=text, form="object")
    return Played(reply, turn.snapshot.commit.time_s * 1000, 1)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
