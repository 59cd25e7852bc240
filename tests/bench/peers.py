"""Compare a step of uwf with one of other engines: the same loop, one output of 1 KB a step.

    python tests/bench/peers.py [--depths 10,100] [--rounds 9] [--json]

Run it by the Python of an environment that has the peers too; README.md says how. Who is not
installed is named and left out. All take turns, so a noisy moment hits all of them alike.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Annotated, Any, ClassVar, TypedDict

# Replace this directory, so its modules do not shadow others of the same name.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from bench.machine import describe_machine  # noqa: E402 - the path above has to come first
from bench.report import Limit, Row, Table, render_facts, render_json, render_table  # noqa: E402 - as above
from bench.timing import Case, Series, ratio, take_turns, time_call, time_process  # noqa: E402 - as above

_OUTPUT = "x" * 1024
_BASE = "dulwich"
# A step may cost so many times the least that can be called one; started anew, no more than Burr's.
_OVER_BASE, _OVER_BURR = 2.5, 1.0
_WARM_UP = 2


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


class Peer:
    """An engine with one loop in a folder; made anew there, it continues."""

    needs: ClassVar[tuple[str, ...]] = ()
    """The modules that it imports."""

    package: ClassVar[str] = ""
    """What pip installs."""

    can_resume: ClassVar[bool] = True

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def step(self) -> None:
        """Take one step, durably."""
        raise NotImplementedError

    def close(self) -> None:
        """End what would keep this process from ending."""


class Dulwich(Peer):
    """The least that can be called a step in git: a blob, a tree, a commit, a ref, by dulwich."""

    needs, package, can_resume = ("dulwich.repo",), "dulwich", False

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        repo, objects = import_module("dulwich.repo"), import_module("dulwich.objects")
        store = import_module("dulwich.object_store")
        self._objects = objects
        self._repo = repo.Repo.init_bare(folder)
        self._store = store.DiskObjectStore(f"{folder}/objects", fsync_object_files=True)
        self._head: bytes | None = None
        self._count = 0

    def step(self) -> None:
        """Write a commit and move the ref."""
        self._count += 1
        blob = self._objects.Blob.from_string(f"{self._count} {_OUTPUT}".encode())
        tree = self._objects.Tree()
        tree.add(b"output", 0o100644, blob.id)
        commit = self._objects.Commit()
        commit.tree, commit.message = tree.id, b"step"
        commit.author = commit.committer = b"a <a@b>"
        commit.author_time = commit.commit_time = self._count
        commit.author_timezone = commit.commit_timezone = 0
        commit.parents = [] if self._head is None else [self._head]
        for each in (blob, tree, commit):
            self._store.add_object(each)
        self._repo.refs.set_if_equals(b"refs/heads/main", self._head, commit.id)
        self._head = commit.id


class Uwf(Peer):
    """A Python function plays the role, in a store with fsync; no condition is asked."""

    needs, package = ("uwf_git",), "."

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        uwf_git = import_module("uwf_git")
        environ = {"HOME": folder, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.defpath}
        for who in ("AUTHOR", "COMMITTER"):
            environ |= {f"GIT_{who}_NAME": "a", f"GIT_{who}_EMAIL": "a@example.com"}
        store, mark = os.path.join(folder, "store.git"), os.path.join(folder, "task")
        result = uwf_git.PlayerResult({"n": 1}, _OUTPUT)
        runtime = uwf_git.TaskRuntime(
            store,
            create=not os.path.exists(mark),
            players={"worker": lambda _context: result},
            environ=environ,
            cwd=folder,
        )
        if os.path.exists(mark):
            with open(mark, encoding="ascii") as file:
                self._task = runtime.task(file.read())
            return
        self._task = _start_endless(runtime, store, environ, folder)
        with open(mark, "w", encoding="ascii") as file:
            file.write(self._task.task_id)

    def step(self) -> None:
        """Take a step."""
        self._task.step()


def _start_endless(runtime: Any, store: str, environ: dict[str, str], folder: str) -> Any:
    """Start a task that asks no condition and never ends, which no file can say."""
    world = import_module("bench.world")
    opened = import_module("uwf_git.store.store").open_store(store, environ=environ)
    with open(os.path.join(folder, "agent"), "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n")
    caller = import_module("uwf_git.commands.caller").Caller(world._now_ms, environ, folder)  # noqa: SLF001 (the bench's own clock)
    world.begin_endless(world.World(folder, environ, caller), opened)
    return runtime.start(world.ENDLESS, "Go on.")


class LangGraph(Peer):
    """A graph of one node, with a list that keeps every output, as its users' graphs do."""

    needs = ("langgraph.graph", "langgraph.checkpoint.sqlite")
    package = "langgraph langgraph-checkpoint-sqlite"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        graphs, savers = map(import_module, self.needs)
        sqlite3 = import_module("sqlite3")
        path = os.path.join(folder, "state.sqlite")
        is_new = not os.path.exists(path)
        add: Callable[[list[str], list[str]], list[str]] = lambda old, new: old + new  # noqa: E731 (langgraph's way)
        state = TypedDict("state", {"outputs": Annotated[list[str], add]})  # noqa: UP013 (only the call makes it in a function)
        graph = graphs.StateGraph(state)
        graph.add_node("work", lambda _state: {"outputs": [_OUTPUT]})
        graph.add_edge(graphs.START, "work")
        graph.add_edge("work", "work")
        saver = savers.SqliteSaver(sqlite3.connect(path, check_same_thread=False))
        # Each call of the graph takes one step, and stops before the next.
        self._graph = graph.compile(checkpointer=saver, interrupt_before=["work"])
        self._config = {"configurable": {"thread_id": "1"}}
        if is_new:
            self._graph.invoke({"outputs": []}, self._config)

    def step(self) -> None:
        """Go on to the next interrupt."""
        self._graph.invoke(None, self._config)


class Burr(Peer):
    """An action that follows itself; the state has the last output alone."""

    needs, package = ("burr.core", "burr.core.persistence"), "burr"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        core, persistence = map(import_module, self.needs)
        saver = persistence.SQLitePersister.from_values(
            os.path.join(folder, "state.sqlite"), table_name="state"
        )
        saver.initialize()

        @core.action(reads=[], writes=["output"])  # type: ignore[untyped-decorator]  # an optional package
        def work(state: Any) -> Any:
            return state.update(output=_OUTPUT)

        builder = core.ApplicationBuilder().with_actions(work)
        builder = builder.with_transitions(("work", "work")).with_identifiers(app_id="1")
        builder = builder.initialize_from(
            saver, resume_at_next_action=True, default_state={}, default_entrypoint="work"
        )
        self._application = builder.with_state_persister(saver).build()

    def step(self) -> None:
        """Take a step."""
        self._application.step()


class Dbos(Peer):
    """Steps of one workflow, which waits between them for the clock of the benchmark."""

    needs, package, can_resume = ("dbos",), "dbos", False

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        dbos, threading = import_module("dbos"), import_module("threading")
        path = os.path.join(folder, "state.sqlite")
        dbos.DBOS(config={"name": "loop", "system_database_url": f"sqlite:///{path}"})
        self._dbos, self._is_closed = dbos.DBOS, False
        self._go, self._done = threading.Semaphore(0), threading.Semaphore(0)

        @dbos.DBOS.step()  # type: ignore[untyped-decorator]  # an optional package
        def work(number: int) -> str:
            return f"{number} {_OUTPUT}"

        @dbos.DBOS.workflow()  # type: ignore[untyped-decorator]  # as above
        def loop() -> None:
            number = 0
            while self._go.acquire() and not self._is_closed:
                number += 1
                work(number)
                self._done.release()

        dbos.DBOS.launch()
        dbos.DBOS.start_workflow(loop)

    def step(self) -> None:
        """Let the workflow take its next step."""
        self._go.release()
        if not self._done.acquire(timeout=60):
            raise TimeoutError("DBOS took no step within a minute")

    def close(self) -> None:
        """Let the workflow end, and its threads."""
        self._is_closed = True
        self._go.release()
        self._dbos.destroy()


PEERS: dict[str, type[Peer]] = {
    _BASE: Dulwich,
    "uwf": Uwf,
    "langgraph": LangGraph,
    "burr": Burr,
    "dbos": Dbos,
}


def _find_missing(peer: type[Peer]) -> str | None:
    """Return why *peer* cannot take part; None if it can."""
    for module in peer.needs:
        try:
            import_module(module)
        except ImportError as error:
            return f"not installed ({error}): pip install {peer.package}"
    return None


def compare(depths: Sequence[int], rounds: int) -> list[Table]:
    """Measure a step of each peer at each depth, then one in a new process."""
    tables: list[Table] = []
    with tempfile.TemporaryDirectory(prefix="uwf-peers-") as root:
        loops: dict[str, Peer] = {}
        for name, peer in PEERS.items():
            missing = _find_missing(peer)
            if missing is not None:
                _say(f"skipped: {name} is {missing}")
                continue
            os.mkdir(os.path.join(root, name))
            loops[name] = peer(os.path.join(root, name))
        taken = 0
        for depth in depths:
            _say(f"to depth {depth} …")
            for loop in loops.values():
                for _ in range(depth - taken):
                    loop.step()
            taken = depth + rounds + _WARM_UP
            cases: dict[str, Case] = {
                name: partial(time_call, loop.step) for name, loop in loops.items()
            }
            series = take_turns(cases, rounds=rounds, warm_up=_WARM_UP)
            tables.append(_tell(f"a step at depth {depth}", series, to=_BASE, most=_OVER_BASE))
        tables.append(_resume(root, loops, rounds))
        for loop in loops.values():
            loop.close()
    return tables


def _resume(root: str, loops: dict[str, Peer], rounds: int) -> Table:
    cases: dict[str, Case] = {}
    for name, loop in loops.items():
        if loop.can_resume:
            argv = (sys.executable, os.path.abspath(__file__), "--resume", name, loop.folder)
            log = os.path.join(root, f"{name}.log")
            cases[name] = partial(time_process, argv, os.environ, log=log)
    nothing = (sys.executable, "-c", "pass")
    log = os.path.join(root, "python.log")
    cases["python -c pass"] = lambda: time_process(nothing, os.environ, log=log)
    series = take_turns(cases, rounds=rounds, warm_up=_WARM_UP)
    return _tell("one step in a new process", series, to="burr", most=_OVER_BURR)


def _tell(title: str, series: dict[str, Series], *, to: str, most: float) -> Table:
    rows = []
    for name, each in series.items():
        figures: dict[str, float | None] = dict(each.figures())
        base = series.get(to)
        figures[f"over_{to}"] = None if base is None else ratio(each, base)
        limits = [Limit(f"over_{to}", most)] if name == "uwf" and base is not None else []
        rows.append(Row(name, figures, limits, failure=each.failure))
    return Table(title, rows)


def main(words: Sequence[str]) -> int:
    """Compare, or take the one step of a new process."""
    parser = argparse.ArgumentParser(prog="peers.py", description="Compare uwf with its peers.")
    parser.add_argument("--depths", default="10,100", help="depths of the loop, in ascending order")
    parser.add_argument("--rounds", type=int, default=9, help="timed turns of each, at least five")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--resume", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args(words)
    if asked.resume:
        name, folder = asked.resume
        PEERS[name](folder).step()
        return 0
    tables = compare([int(depth) for depth in asked.depths.split(",")], max(5, asked.rounds))
    facts = describe_machine(tempfile.gettempdir())
    if asked.json:
        sys.stdout.write(render_json(facts, {"peers": tables}, is_quick=False))
    else:
        sys.stdout.write(render_facts(facts))
        sys.stdout.write("".join("\n" + render_table(table) for table in tables))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
