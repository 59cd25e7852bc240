"""The fixtures, markers and options of the whole suite: seal, fixed time and ids, git, goldens."""

import difflib
import gc
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import hypothesis
import hypothesis.configuration
import kinds
import pytest
import seal
from fresh_store import keep_stores_in
from hypothesis.database import DirectoryBasedExampleDatabase

from uwf_git.model.names import ThreadId

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"

# Agents of a test get this long to notice that it is over.
_GRACE_S = 3.0

# Half of a run's time is the file system's where each of 100,000 files is forced to a disk.
_IN_MEMORY = "/dev/shm"
_ROOM = 6 << 30

_EXAMPLES = {"uwf": 100, "costly": 25, "nightly": 1000}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the one way in which golden files change, and what the tests by chance do."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write tests/golden/ anew from what the tests saw (review the diff)",
    )
    parser.addoption("--seed", type=int, default=1, help="what the slow tests by chance draw from")
    parser.addoption("--rounds", type=int, help="how often each of them draws (default: 30 s)")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers and the hypothesis profiles, and see that bytecode is kept."""
    for marker, meaning in kinds.MARKERS.items():
        config.addinivalue_line("markers", f"{marker}: {meaning}")
    # A shell starts what it puts in the background with Ctrl-C ignored, and so would be all
    # programs that the tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "PYTEST_DEBUG_TEMPROOT" not in os.environ and _has_room(_IN_MEMORY):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = _IN_MEMORY
    cache: pytest.Cache | None = getattr(config, "cache", None)
    if cache is not None and sys.dont_write_bytecode:
        _keep_bytecode_in(str(cache.mkdir("bytecode")))
    _register_profiles(cache)


def _has_room(folder: str) -> bool:
    """Tell whether the temporary files of a run and of the one before fit in *folder*."""
    try:
        system = os.statvfs(folder)
    except (OSError, AttributeError):  # not on Linux
        return False
    may_run = not system.f_flag & os.ST_NOEXEC and os.access(folder, os.W_OK)
    return may_run and system.f_bavail * system.f_frsize > _ROOM


def _keep_bytecode_in(folder: str) -> None:
    """Cache bytecode for a person who wants none beside the sources.

    Without it each of some thousand processes compiles what it imports, which triples its start.
    """
    sys.dont_write_bytecode, sys.pycache_prefix = False, folder
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # `python -B` sets none
    os.environ["PYTHONPYCACHEPREFIX"] = folder


def _register_profiles(cache: pytest.Cache | None) -> None:
    """Set hypothesis up for noisy machines, with its files in pytest's cache.

    Failures are tried first in the next run, so they are kept from run to run; not in CI, where
    the same commit has to give the same answer twice.
    """
    in_ci = "CI" in os.environ
    database = None
    if cache is not None:
        kept = cache.mkdir("hypothesis")
        hypothesis.configuration.set_hypothesis_home_dir(kept)
        database = None if in_ci else DirectoryBasedExampleDatabase(kept / "examples")
    for profile, examples in _EXAMPLES.items():
        hypothesis.settings.register_profile(
            profile,
            deadline=None,
            print_blob=True,
            derandomize=in_ci and profile != "nightly",
            database=database,
            max_examples=examples,
        )
    hypothesis.settings.load_profile("uwf")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Start no workers for single files, and one more than processors for tests that wait."""
    asked = [arg.partition("::")[0] for arg in config.args]
    if all(arg.endswith(".py") for arg in asked) or config.option.collectonly:
        return 0
    if config.option.markexpr == "quick" or "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    # Every third second of the suite is spent on time limits and on other programs.
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    return (len(usable) or os.cpu_count() or 1) + 1


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files without quick tests when only those are asked for."""
    if config.option.markexpr != "quick" or collection_path.suffix != ".py":
        return None
    return True if not kinds.may_be_quick(_below_tests(collection_path)) else None


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Choose the number of examples of a file before its `@given` reads it."""
    if isinstance(collector, pytest.Module) and not collector.config.getoption(
        "--hypothesis-profile"
    ):
        is_costly = collector.config.option.markexpr == "quick" or kinds.matches(
            _below_tests(collector.path), kinds.COSTLY_EXAMPLES
        )
        hypothesis.settings.load_profile("costly" if is_costly else "uwf")


@pytest.hookimpl(tryfirst=True)  # before `-m` is looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by its file and fixtures, and put the longest first."""
    for item in items:
        for marker in sorted(kinds.kinds_of(_below_tests(item.path), _fixtures_of(item))):
            item.add_marker(marker)
    items.sort(key=lambda item: kinds.order_of(_below_tests(item.path)))


def _fixtures_of(item: pytest.Item) -> list[str]:
    return list(getattr(item, "fixturenames", ()))


def _below_tests(path: Path) -> str:
    return path.relative_to(HERE).as_posix() if path.is_relative_to(HERE) else path.name


def pytest_collection_finish() -> None:
    """Keep the collector off what is there now: each of thousands of forks would copy it."""
    gc.collect()
    gc.freeze()


_ENDED = itertools.count(1)


def pytest_runtest_teardown() -> None:
    """Do the same for what stays of each few hundred tests: a whole collection took a second."""
    if next(_ENDED) % 300 == 0:
        gc.collect()
        gc.freeze()


class Draws(NamedTuple):
    """The chance of a test, and how often it draws; a failure names both."""

    chance: random.Random
    asked: int | None

    def rounds(self, short: int) -> range:
        """Return the numbers of the rounds; *short* of them take some seconds."""
        return range(self.asked or short)


@pytest.fixture
def draws(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> Draws:
    """Give the chance of this test by ``--seed``, and its rounds by ``--rounds``."""
    seed = f"{pytestconfig.getoption('--seed')} {request.node.nodeid.partition('::')[2]}"
    return Draws(random.Random(seed), pytestconfig.getoption("--rounds"))


class _Run:
    """One run of the suite: where its tests live, and which test lives where."""

    def __init__(self, homes: Path) -> None:
        self.homes = homes
        self.tests: list[str] = []

    def new_place(self, test: str) -> Path:
        place = self.homes / str(len(self.tests))
        self.tests.append(test)
        seal.furnish(place)
        return place

    def test_living_in(self, home: str) -> str:
        return self.tests[int(Path(home).parent.name)]


@pytest.fixture(scope="session", autouse=True)
def sealed_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Run]:
    """Seal the whole run, and look afterwards whether anything got out.

    Fixtures wider than a test are set up before any test's own seal, so they need this one.
    """
    stores = {store: seal.snapshot(store) for store in seal.default_stores()}
    run = _Run(tmp_path_factory.mktemp("places"))
    with ExitStack() as stack:
        environment = seal.sealed_environment(os.environ, place=run.new_place("the whole run"))
        stack.enter_context(mock.patch.dict(os.environ, environment, clear=True))
        stack.enter_context(seal.closed_network())
        time.tzset()
        yield run
    time.tzset()
    complaints = [
        f"the tests changed {path}; a real store is not theirs to touch"
        for store, before in stores.items()
        for path in seal.changed(before, seal.snapshot(store))[:10]
    ]
    for pid, (command, home) in seal.survivors(run.homes, grace_s=_GRACE_S).items():
        complaints.append(f"{run.test_living_in(home)} left process {pid} behind: {command}")
        seal.end(pid)
    if complaints:
        pytest.fail("\n".join(complaints), pytrace=False)


@pytest.fixture(autouse=True)
def sealed(sealed_run: _Run, request: pytest.FixtureRequest) -> Iterator[None]:
    """Give each test a home, a temporary directory and a place to stand that nobody else has."""
    place = sealed_run.new_place(request.node.nodeid)
    temporary = place / "tmp"
    keep_stores_in(place / "stores")
    with (
        mock.patch.dict(os.environ, seal.places(place)),
        mock.patch.object(tempfile, "tempdir", str(temporary)),
        chdir(place / "home"),
    ):
        yield
    if left := os.listdir(temporary):
        pytest.fail(f"the test left {sorted(left)} in the temporary directory", pytrace=False)


@pytest.fixture
def clock() -> Callable[[], int]:
    """Give a clock, in milliseconds: `seal.START_MS` first, a second later at every look."""
    return itertools.count(seal.START_MS, 1000).__next__


@pytest.fixture
def thread_ids() -> Callable[[], ThreadId]:
    """Give new thread ids that are counted: 01J00000000000000000000001, and so on."""
    numbers = itertools.count(1)
    return lambda: ThreadId(f"01J000{next(numbers):020d}")


@pytest.fixture
def git() -> Callable[..., str]:
    """Run the real git: ``git("log", "--oneline", cwd=repository)`` gives what it printed.

    ``stdin=`` takes text or bytes; bytes that are no UTF-8 come back as surrogates. A git that
    fails raises `subprocess.CalledProcessError`, with everything that it said as a note.
    """

    def run(*args: str | Path, cwd: Path, stdin: str | bytes = b"") -> str:
        __tracebackhide__ = True
        fed = stdin.encode() if isinstance(stdin, str) else stdin
        command = ["git", *map(str, args)]
        try:
            ran = subprocess.run(command, cwd=cwd, input=fed, capture_output=True, check=True)
        except subprocess.CalledProcessError as failure:
            failure.add_note((failure.stdout + failure.stderr).decode(errors="replace"))
            raise
        return ran.stdout.decode(errors="surrogateescape")

    return run


@pytest.fixture
def golden(pytestconfig: pytest.Config) -> Callable[[str, str | bytes], None]:
    """Compare with a golden file: ``golden("help/uwf.txt", text)``.

    Goldens are formats written down: they change only by ``pytest --update-golden``, and that
    diff is reviewed.
    """
    update = bool(pytestconfig.getoption("--update-golden"))

    def compare(name: str, actual: str | bytes) -> None:
        __tracebackhide__ = True
        path = GOLDEN / name
        seen = actual.encode() if isinstance(actual, str) else actual
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(seen)
        elif not path.exists():
            pytest.fail(f"there is no tests/golden/{name}; write it with pytest --update-golden")
        elif path.read_bytes() != seen:
            pytest.fail(_difference(name, path.read_bytes(), seen))

    return compare


def _difference(name: str, expected: bytes, seen: bytes) -> str:
    diff = difflib.unified_diff(
        expected.decode(errors="backslashreplace").splitlines(keepends=True),
        seen.decode(errors="backslashreplace").splitlines(keepends=True),
        f"tests/golden/{name}",
        "seen by this test",
    )
    told = [line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n" for line in diff]
    # Carriage returns would hide the line that they belong to.
    return "not as written down:\n" + "".join(told).replace("\r", "\\r")
