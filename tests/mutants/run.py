"""Change the program a little, many times, and list the changes that no test notices.

    python tests/mutants/run.py                      a sample of each room
    python tests/mutants/run.py model store/refs     some rooms
    python tests/mutants/run.py --only 3f2a          one mutant, by the beginning of its name
    python tests/mutants/run.py --elsewhere          what a room does not notice meets all tests

Each mutant is tried in a copy of the checkout, with the tests that run its lines, up to the first
failure. README.md says what the table means.
"""

import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

import seal  # noqa: E402 (tests/ is on the path only now)
from mutants import forking, watching  # noqa: E402 (as above)
from mutants.mutations import Mutant, apply, lines_of, list_mutants  # noqa: E402 (as above)
from mutants.watched import Watched, file_of  # noqa: E402 (as above)

SAMPLE = 60
SEED = "1"

_TESTED_IN_THEIR_OWN_FOLDER = [
    "agentkit",
    "agents",
    "library",
    "web",
    "commands/cas",
    "commands/draft",
    "commands/fleet",
    "commands/inspect",
    "commands/plan",
    "commands/remote",
    "commands/workflow",
    "commands/worktree",
    "store/remotes",
    "store/signatures",
    "store/workflows",
]

ROOMS = {
    **{room: (room,) for room in _TESTED_IN_THEIR_OWN_FOLDER},
    "engine": ("engine",),
    "model": ("model",),
    "plan": ("plan", "commands/plan", "cli/plan", "agentkit/adapters/test_stop_hook.py"),
    "commands/agent_run": ("commands/agent_run", "commands/turn/test_isolated.py"),
    "debug_log": ("test_debug_log.py",),
    "surroundings": ("test_surroundings.py", "agents", "store/remotes"),
    "commands/agent": ("commands/test_agent.py",),
    "commands/commit_events": ("commands/events",),
    "commands/journal": ("commands/events",),
    "commands/start": ("commands/test_start.py", "commands/lifecycle"),
    "commands/remove": ("commands/test_remove.py", "commands/lifecycle"),
    "commands/background": ("commands/drive",),
    "store/git": ("store/git", "commands/receive/test_ref_update.py"),
    "store/durable": ("store/test_durable.py",),
    "store/locks": ("store/test_locks.py",),
    "store/packing": ("store/gc",),
    "store/tidy": ("store/gc",),
    "store/index": ("store/test_index.py",),
    "store/lookup": ("store/test_lookup.py", "store/lookup"),
    "commands/admin": ("commands/test_admin.py", "commands/admin"),
    "store/nodes": ("store/test_nodes.py",),
    "commands/after": ("commands/test_caller.py", "commands/control"),
    "cli": ("cli", "test_documents.py", "test_transcripts.py"),
    "commands/caller": (
        "commands/test_caller.py",
        "commands/verify/test_signatures.py",
        "store/signatures",
    ),
    "commands/mcp": ("commands/mcp", "cli/test_mcp*.py"),
    "commands/receive": (
        "commands/receive",
        "interop/test_branches.py",
        "interop/test_hostile_ends.py",
        "interop/test_other_ends.py",
    ),
    "store/store": ("store/test_*.py",),
    "store/trust": ("store/test_*.py", "commands/test_agent.py"),
    "store/refs": ("store/test_refs.py", "store/test_listing.py", "store/gc/test_tidy.py"),
    "store/objects": ("store/objects", "store/test_damage.py", "store/test_chain_cycles.py"),
    "store/threads": ("store/threads", "store/test_chain_cycles.py", "store/test_format.py"),
    "commands/turn": ("commands/turn", "commands/step", "commands/test_*limit*.py"),
    "commands/step": (
        "commands/step",
        "commands/agent_run/test_orphaned_run.py",
        "commands/turn",
        "commands/worktree",
    ),
    "commands/verify": ("commands/verify",),
    "commands/control": (
        "commands/control",
        "commands/agent_run/test_stop_agent.py",
        "commands/test_lessons_of_control.py",
    ),
    "commands/drive_thread": (
        "commands/drive",
        "commands/step/test_flow_policies.py",
        "commands/step/test_record_turn.py",
        "commands/test_lessons_of_driving.py",
    ),
    "commands/split": ("commands/test_split.py", "commands/step/test_record_turn.py"),
    "commands/family": (
        "commands/test_family.py",
        "commands/step/test_record_turn.py",
        "commands/turn/test_branches.py",
    ),
}
"""The folders and files below uwf_git/ that are changed, and where below tests/ their tests are."""

_MARKED = "not browser and not realcli and not crash and not race and not hygiene"
"""Slow tests are run too; those that crash, race or need other programs take minutes."""

# More processor time than this many times what the tests took while they were watched, and this
# many seconds more, is noticed; so is waiting for ever. A busy machine makes the time by the wall
# long.
_TIMES_SLOWER, _WAITS_LONGER = 2, 4
_SECONDS_MORE, _SECONDS_WAITED = 5, 20
# As with `ulimit -S`: what uwf itself limits is told from no limit by the hard one.
_NOTICED = {"killed", "too slow"}
_MEMORY = (8 << 30, resource.getrlimit(resource.RLIMIT_AS)[1])


def list_modules(root: Path, room: str) -> list[Path]:
    """List the modules of a room, which may be one."""
    place = root / "uwf_git" / room
    return sorted(place.rglob("*.py")) or [place.with_suffix(".py")]


class Tried(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    outcome: str
    """``killed``, ``too slow``, ``survived`` or ``equivalent``."""

    by: str
    """The tests that failed (the first, or all with ``--every``), or why it is equivalent."""

    seconds: float


class _Limit(NamedTuple):
    cpu_s: int
    wall_s: float


class Tree:
    """A copy of the checkout whose files are changed."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.marked = _MARKED
        # Short, since the path of a socket of gpg has 107 bytes at most.
        self._temporary = place / "t"
        self._temporary.mkdir()
        self._changes = 0
        self._server: _Server | None = None
        listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.check_output(listing, cwd=ROOT, text=True).split("\0")[:-1]:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name, follow_symlinks=False)

    def write(self, path: str, source: bytes) -> None:
        """Write a file so that no bytecode of an earlier version is taken for its own."""
        self._changes += 1
        (self.place / path).write_bytes(source)
        when = int(time.time()) + 10 * self._changes
        os.utime(self.place / path, (when, when))

    def test(
        self, mutant: Mutant, tests: list[str], limit: "_Limit", *, every: bool
    ) -> tuple[int | None, str]:
        """Run tests up to the first failure, or all; return the exit status, and what failed.

        None for the status: it took too long.
        """
        source = (self.place / mutant.path).read_bytes()
        self.write(mutant.path, apply(mutant, source))
        try:
            answer = self._server and self._server.ask(
                {
                    "path": str(self.place / mutant.path),
                    "before": source.decode(),
                    "tests": tests,
                    "every": every,
                    "cpu_s": limit.cpu_s,
                    "wall_s": limit.wall_s,
                }
            )
            self._clean()
            if answer and not answer["instead"]:
                failed = answer["failed"]
                return None if answer["is_slow"] else int(bool(failed)), " ".join(failed)
            return self._run([] if every else ["-x"], tests, self._environment(), limit)
        finally:
            self.write(mutant.path, source)

    def serve(self, files: list[str]) -> None:
        """Start a pytest that collects the tests of *files* and tries each change in a fork."""
        self.stop()
        environment = self._environment()
        environment["PYTHONPATH"] += f"{os.pathsep}{HERE}"
        self._server = _Server(self._command(["-p", "forking"], files), self.place, environment)

    def stop(self) -> None:
        """End the pytest that `serve` started."""
        if self._server:
            self._server.stop()
            self._server = None

    def watch(self, mutants: list[Mutant], tests: list[str]) -> Watched:
        """Run all tests once, to see which of them run the lines of which mutant."""
        notes = self.place / "notes"
        shutil.rmtree(notes, ignore_errors=True)
        notes.mkdir()
        shutil.copy2(HERE / "watching.py", notes)
        (notes / "sitecustomize.py").write_text("import watching\n\nwatching.start()\n")
        (notes / watching.ASKED).write_text(json.dumps(self._lines(mutants)))
        environment = self._environment() | {watching.FOLDER: str(notes)}
        environment["PYTHONPATH"] += f"{os.pathsep}{notes}"
        status, last = self._run(["-p", "watching"], tests, environment, None)
        watched = Watched.read(notes)
        if not watched.seconds or status not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
            sys.exit(f"not all tests could be watched: {last}")
        return watched

    def _lines(self, mutants: list[Mutant]) -> dict[str, dict[int, list[str]]]:
        found: dict[str, dict[int, list[str]]] = {}
        for mutant in mutants:
            lines = found.setdefault(str(self.place / mutant.path), {})
            for line in lines_of(mutant, (self.place / mutant.path).read_bytes()):
                lines.setdefault(line, []).append(mutant.name())
        return found

    def _run(
        self, more: list[str], tests: list[str], environment: dict[str, str], limit: "_Limit | None"
    ) -> tuple[int | None, str]:
        command = self._command(more, tests)
        with tempfile.TemporaryFile() as output:
            running = subprocess.Popen(
                command,
                cwd=self.place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            resource.prlimit(running.pid, resource.RLIMIT_AS, _MEMORY)
            if limit is not None:
                resource.prlimit(running.pid, resource.RLIMIT_CPU, (limit.cpu_s, limit.cpu_s + 5))
            try:
                status: int | None = running.wait(limit and limit.wall_s)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                self._end(running)
            output.seek(0)
            if status == -signal.SIGXCPU:
                status = None
            return status, _failures(output.read().decode(errors="replace"))

    def _command(self, more: list[str], tests: list[str]) -> list[str]:
        listed = self.place / "tests.txt"
        listed.write_text("\n".join(tests))
        command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider"]
        command += ["-p", "no:anyio", "-m", self.marked, "--no-header", "--tb=no", "-rfE", *more]
        # What is drawn by chance would be drawn for half a minute.
        return [*command, "--rounds=20", f"@{listed}"]

    def _environment(self) -> dict[str, str]:
        own = {
            "CI": "true",  # hypothesis tries the same examples each time
            "PYTEST_DEBUG_TEMPROOT": str(self._temporary),
            "PYTHONPATH": str(self.place),
            "PYTHONPYCACHEPREFIX": str(self.place / "bytecode"),
        }
        inherited = {**os.environ}
        inherited.pop("PYTHONDONTWRITEBYTECODE", None)
        return inherited | own

    def _end(self, running: "subprocess.Popen[bytes]") -> None:
        """End what the tests left behind: their group, and whoever lives in a home of theirs."""
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        self._clean()

    def _clean(self) -> None:
        for pid in seal.survivors(self._temporary, grace_s=0):
            seal.end(pid)
        shutil.rmtree(self._temporary, ignore_errors=True)
        self._temporary.mkdir(exist_ok=True)


class _Server:
    """A pytest that has collected tests, and tries changes in forks of itself (`forking`)."""

    def __init__(self, command: list[str], place: Path, environment: dict[str, str]) -> None:
        asks_read, asks = os.pipe()
        answers, answers_write = os.pipe()
        passed = {forking.ASKS: str(asks_read), forking.ANSWERS: str(answers_write)}
        self._running = subprocess.Popen(
            command,
            cwd=place,
            env=environment | passed,
            pass_fds=(asks_read, answers_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(asks_read)
        os.close(answers_write)
        resource.prlimit(self._running.pid, resource.RLIMIT_AS, _MEMORY)
        self._asks, self._answers = os.fdopen(asks, "w", buffering=1), os.fdopen(answers)
        self._read()

    def ask(self, ask: forking.Ask) -> forking.Answer:
        self._asks.write(json.dumps(ask) + "\n")
        answer: forking.Answer = json.loads(self._read())
        return answer

    def _read(self) -> str:
        line = self._answers.readline()
        return line or sys.exit("the pytest that tries mutants in forks has ended")

    def stop(self) -> None:
        self._asks.close()
        self._answers.close()
        self._running.wait()


def _failures(output: str) -> str:
    """Return the tests that failed, or the last line if no test did."""
    lines = output.strip().splitlines()
    told = [each for each in lines if each.startswith(("FAILED ", "ERROR "))]
    failed = [each.split(" ", 1)[1].partition(" - ")[0] for each in told]
    return " ".join(dict.fromkeys(failed)) or (lines or [""])[-1][:100]


class Room:
    """A room of the program, and its tests."""

    def __init__(self, tree: Tree, name: str, patterns: Iterable[str]) -> None:
        self.name = name
        self._tree = tree
        self._patterns = patterns
        self._tests = tree.place / "tests"
        self._watched = Watched({}, set(), {})

    def sample(self, size: int, seed: str) -> list[Mutant]:
        """Choose mutants by their names, so that edits elsewhere do not change the choice."""
        root = self._tree.place
        found = [
            mutant
            for path in list_modules(root, self.name)
            for mutant in list_mutants(str(path.relative_to(root)), path.read_bytes())
        ]
        _say(f"# {self.name}: {len(found)} mutants")
        found.sort(key=lambda mutant: _rank(seed, mutant))
        return sorted(found[:size], key=lambda mutant: (mutant.path, mutant.span))

    def watch(self, mutants: list[Mutant]) -> None:
        """See which tests run the lines of which mutant."""
        began = time.monotonic()
        files = [str(each) for each in self._files()]
        self._watched = self._tree.watch(mutants, files)
        self._tree.serve(files)
        tests, failed = self._watched.seconds, self._watched.failed
        _say(f"# {len(tests)} tests, watched for {time.monotonic() - began:.0f} s")
        for each in sorted(failed):
            _say(f"# left out, since it fails while it is watched: {each}")

    def try_mutant(self, mutant: Mutant, *, every: bool) -> Tried:
        """Run the tests that run the mutant's lines, then those beside them."""
        began = time.monotonic()
        outcome, failed = "survived", ""
        for tests in self._stages(mutant):
            status, by = self._tree.test(mutant, tests, self._limit(tests), every=every)
            if status != 0:
                outcome = "too slow" if status is None else "killed"
                failed = f"{failed} {by}".strip()
                if not every:
                    break
        return Tried(mutant, outcome, failed, time.monotonic() - began)

    def tests(self) -> set[str]:
        """Return the tests that a mutant could meet."""
        return set(self._watched.seconds)

    def _stages(self, mutant: Mutant) -> Iterator[list[str]]:
        """Yield tests in the order in which they are likely to fail.

        What a fixture does for several tests is noted for the first, so the others of its file
        follow. For what runs when a module is imported all tests are run, the nearest first.
        """
        ran = self._watched.ran.get(mutant.name(), set())
        if "" in ran:
            stages = list(self._by_file(mutant.path))
        elif not ran:
            stages = list(self._by_file(mutant.path))[:1]
        else:
            files = {file_of(test) for test in ran}
            beside = [test for test in self._watched.seconds if file_of(test) in files]
            stages = [ran, set(beside) - ran]
        yield from filter(None, map(self._watched.order, stages))

    def _by_file(self, path: str) -> Iterator[set[str]]:
        """Yield the module's own tests, then those that name it, then the rest of the room's."""
        inside = Path(path).relative_to("uwf_git")
        own = Path("tests", inside.parent, f"test_{inside.name}")
        near = {str(each) for each in self._files() if self._is_near(each, inside)}
        nearest = [{str(own)}, near, {str(each) for each in self._files()}]
        done: set[str] = set()
        for files in nearest:
            yield {test for test in self._watched.seconds if file_of(test) in files - done}
            done |= files

    def _is_near(self, test: Path, inside: Path) -> bool:
        """Tell whether a file of tests names a module, or lies in the mirror of its subfolder."""
        if inside.parent != Path(self.name) and test.is_relative_to("tests" / inside.parent):
            return True
        module = ".".join(("uwf_git", *inside.with_suffix("").parts))
        package, _, name = module.rpartition(".")
        text = (self._tree.place / test).read_text()
        named = rf"^\s*(from {module} |import {module}\b|from {package} import .*\b{name}\b)"
        return re.search(named, text, re.MULTILINE) is not None

    def _files(self) -> list[Path]:
        found: dict[Path, None] = {}
        for pattern in self._patterns:
            for place in sorted(self._tests.glob(pattern)):
                files = sorted(place.rglob("test_*.py")) if place.is_dir() else [place]
                found.update(dict.fromkeys(file.relative_to(self._tree.place) for file in files))
        return list(found)

    def _limit(self, tests: list[str]) -> _Limit:
        seconds = sum(self._watched.seconds[each] for each in tests)
        return _Limit(
            int(seconds * _TIMES_SLOWER + _SECONDS_MORE), seconds * _WAITS_LONGER + _SECONDS_WAITED
        )


class Elsewhere(Room):
    """All tests, for the mutants that the tests of their own room did not notice."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree, "elsewhere", ["*/", "test_*.py"])
        tree.marked = f"{_MARKED} and not slow"  # slow tests, watched, take more than an hour
        self._met: dict[str, set[str]] = {}

    def try_all(self, survived: dict[Mutant, Room]) -> Iterator[tuple[Room, Tried]]:
        """Try each with the tests that run its lines, or that import it, but for its own room's."""
        self._met = {mutant.name(): room.tests() for mutant, room in survived.items()}
        self.watch(list(survived))
        for mutant, room in survived.items():
            yield room, self.try_mutant(mutant, every=False)
        self._tree.stop()

    def _stages(self, mutant: Mutant) -> Iterator[list[str]]:
        tests = self._watched.ran.get(mutant.name(), set())
        if "" in tests:
            inside = Path(mutant.path).relative_to("uwf_git")
            near = {str(each) for each in self._files() if self._is_near(each, inside)}
            tests = {test for test in self._watched.seconds if file_of(test) in near}
        yield from filter(None, [self._watched.order(tests - self._met[mutant.name()])])


def _rank(seed: str, mutant: Mutant) -> bytes:
    return hashlib.sha256(f"{seed} {mutant.name()}".encode()).digest()


def _equivalents() -> dict[str, str]:
    """Read which mutants change nothing that a test could see, and why."""
    lines = (HERE / "equivalent.tsv").read_text().splitlines()
    rows = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return {row[0]: row[-1] for row in rows}


def main() -> int:
    """Try the mutants; exit with 1 if a room is below the rate that it has to have."""
    options = _options()
    known = _equivalents()
    noticed: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    survived: dict[Mutant, Room] = {}
    rooms = options.rooms or list(ROOMS)
    with tempfile.TemporaryDirectory(prefix="uwf-", dir=options.place) as place:
        tree = Tree(Path(place))
        for room in (Room(tree, name, ROOMS[name]) for name in rooms):
            chosen = _chosen(room, options)
            room.watch([each for each in chosen if each.name() not in known])
            for tried in (_report(_try(room, each, known, every=options.every)) for each in chosen):
                noticed[room.name] += tried.outcome in _NOTICED
                counted[room.name] += tried.outcome != "equivalent"
                if tried.outcome == "survived":
                    survived[tried.mutant] = room
            tree.stop()
        if options.elsewhere and survived:
            for room, tried in Elsewhere(tree).try_all(survived):
                noticed[room.name] += _report(tried).outcome in _NOTICED
    for name in rooms:
        share = 100 * noticed[name] / counted[name] if counted[name] else 100.0
        _say(f"# {name}: {noticed[name]} of {counted[name]} noticed, {share:.0f} %")
    return int(any(noticed[name] < options.rate / 100 * counted[name] for name in rooms))


def _chosen(room: Room, options: argparse.Namespace) -> list[Mutant]:
    if not options.only:
        return room.sample(options.sample, options.seed)
    everything = room.sample(sys.maxsize, options.seed)
    return [each for each in everything if each.name().startswith(tuple(options.only))]


def _try(room: Room, mutant: Mutant, known: dict[str, str], *, every: bool) -> Tried:
    why = known.get(mutant.name())
    if why is not None:
        return Tried(mutant, "equivalent", why, 0.0)
    return room.try_mutant(mutant, every=every)


def _report(tried: Tried) -> Tried:
    mutant = tried.mutant
    place = f"{mutant.path}:{mutant.line}"
    cells = (mutant.name(), tried.outcome, place, mutant.scope, mutant.before, mutant.after)
    _say("\t".join((*cells, tried.by, f"{tried.seconds:.1f}")))
    return tried


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=", ".join(ROOMS))
    parser.add_argument("--sample", type=int, default=SAMPLE, help="mutants of a room")
    parser.add_argument("--seed", default=SEED, help="another seed gives another sample")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="mutants whose names begin so")
    parser.add_argument("--every", action="store_true", help="note all tests that fail")
    parser.add_argument(
        "--elsewhere", action="store_true", help="survivors meet the tests of all rooms"
    )
    parser.add_argument("--rate", type=float, default=90, help="per cent that must be noticed")
    parser.add_argument("--place", metavar="FOLDER", help="where the copy lies")
    options = parser.parse_args()
    if unknown := set(options.rooms) - ROOMS.keys():
        parser.error(f"there is no room {min(unknown)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
