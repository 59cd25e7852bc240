"""What every test stands on: the seal, fixed time and ids, real git, golden files.

Owns: the fixtures and options of the whole suite.
Knows nothing of: any one module's tests; their fixtures live beside them.
Always true: a test that passes here passes on every machine, and leaves nothing behind.
"""

import difflib
import itertools
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir
from pathlib import Path
from unittest import mock

import hypothesis
import hypothesis.configuration
import pytest
import seal
from hypothesis.database import DirectoryBasedExampleDatabase

from uwf_git.model.thread_id import ThreadId

GOLDEN = Path(__file__).parent / "golden"

# Agents of a test get this long to notice that it is over.
_GRACE_S = 3.0


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the one way in which golden files change."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write tests/golden/ anew from what the tests saw (review the diff)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Set hypothesis up for noisy machines, and keep its files with pytest's own.

    The failures it has found are tried first in the next run, so they are kept from run to run,
    but in CI, where the same commit has to give the same answer twice.
    """
    # A shell starts what it puts in the background with Ctrl-C ignored, and so would be all
    # programs that the tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    in_ci = "CI" in os.environ
    cache: pytest.Cache | None = getattr(config, "cache", None)
    database = None
    if cache is not None:
        kept = cache.mkdir("hypothesis")
        hypothesis.configuration.set_hypothesis_home_dir(kept)
        database = None if in_ci else DirectoryBasedExampleDatabase(kept / "examples")
    hypothesis.settings.register_profile(
        "uwf", deadline=None, print_blob=True, derandomize=in_ci, database=database
    )
    hypothesis.settings.load_profile("uwf")


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
