"""The logs of a thread: whole, in order, without keys, until no process works on it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands.at_work import wait_for, wait_until
from commands.world import World
from fresh_store import fresh_store
from refusing import as_no_root

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.inspect.logs import LogPiece, LogRequest, find_status, follow_logs, read_logs
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.local_files import lock_drive, log_path

ANSWER = """echo '{"meta": {"text": "x", "ok": true}}'"""

# Logs a line, then waits for the file `go.<role>`.
SLOW = f"""
echo "$UWF_ROLE is thinking" >&2
echo $$ >>ran
until [ -e "go.$UWF_ROLE" ]; do sleep 0.02; done
echo "$UWF_ROLE has thought" >&2
{ANSWER}
"""

FAILS = "echo one >&2; echo two >&2; echo three >&2; exit 7"

# A driver as --background starts it; its command line can be read from outside.
DRIVE = """
import sys
from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store
from uwf_git.store.threads.local_files import lock_drive
with lock_drive(open_store(sys.argv[1]), ThreadId(sys.argv[2]), since_ms=1):
    print("drives", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def slow(world: World) -> Iterator[ThreadId]:
    """Start a thread whose agents wait for a file; end them afterwards."""
    yield world.start(world.program(SLOW), workflow=world.put().workflow)
    for role in ("writer", "checker"):
        (world.place / f"go.{role}").touch()


def begin(world: World, thread: ThreadId, *, ran: int = 1) -> subprocess.Popen[bytes]:
    """Start a step in another process, and wait until its agent runs."""
    engine = world.process("thread", "step", thread)
    path = world.place / "ran"
    wait_until(
        lambda: path.exists() and len(path.read_text().split()) == ran, "the agent never began"
    )
    return engine


def end(engine: subprocess.Popen[bytes]) -> None:
    with engine:
        engine.communicate()


def driver_says(world: World, thread: ThreadId, text: str, *, how: str = "a") -> Path:
    path = Path(log_path(world.store, thread))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open(how) as log:
        log.write(text)
    return path


def told(world: World, thread: str, last: int | None = None, **environ: str) -> list[str]:
    """Read the logs, each line with the first word of its source."""
    pieces = read_logs(world.store, LogRequest(thread, last, environ))
    return [f"{piece.source.split()[0]}: {line}" for piece in pieces for line in piece.lines]


class Following:
    """A follower of a thread's logs, in a Python thread."""

    def __init__(self, world: World, thread: str, last: int | None = None) -> None:
        self.lines: list[str] = []
        self.failed: BaseException | None = None
        self._pieces = follow_logs(world.store, LogRequest(thread, last))
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def _follow(self) -> None:
        try:
            for piece in self._pieces:
                self.lines += [f"{piece.source.split()[0]}: {line}" for line in piece.lines]
        except BaseException as error:  # noqa: BLE001 (reported by `end`)
            self.failed = error

    def wait_for(self, line: str) -> None:
        wait_until(lambda: line in self.lines, f"{line!r} never came")

    def end(self) -> list[str]:
        self._thread.join(20)
        assert not self._thread.is_alive(), "it never ended"
        assert self.failed is None
        return self.lines


@contextmanager
def driven(world: World, thread: ThreadId, log: Path, *words: str) -> Iterator[None]:
    """Start a process that drives *thread* with standard error to *log*."""
    with (
        log.open("ab") as stderr,
        subprocess.Popen(
            [sys.executable, "-c", DRIVE, world.store.path, thread, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as driver,
    ):
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"drives\n"
        yield
        driver.communicate(b"")


def test_thread_without_a_run_has_no_log(world: World) -> None:
    assert told(world, world.stepped()) == []


def test_log_of_the_background_driver_is_kept_when_it_has_ended(world: World) -> None:
    thread = world.begun()
    driver_says(world, thread, "step 1\nerror: no key\n")
    world.step(thread)
    world.kill(thread)

    assert told(world, thread[:26].lower()) == ["background: step 1", "background: error: no key"]


@pytest.mark.parametrize(
    ("last", "lines"),
    [
        (0, []),
        (1, ["writer: writer is thinking"]),
        (2, ["background: b", "writer: writer is thinking"]),
        (9, ["background: a", "background: b", "writer: writer is thinking"]),
    ],
)
def test_last_lines_are_counted_over_all_logs(
    world: World, slow: ThreadId, last: int, lines: list[str]
) -> None:
    driver_says(world, slow, "a\nb\n")
    engine = begin(world, slow)

    assert told(world, slow, last) == lines

    (world.place / "go.writer").touch()
    end(engine)


def test_log_of_a_failed_attempt_is_shown_if_there_is_no_other(world: World) -> None:
    world.configure("uwf.retries", "2")
    thread = world.start(world.program(FAILS), workflow=world.put().workflow)
    world.fail(thread, agent_player(None))

    assert [piece for piece in read_logs(world.store, LogRequest(thread)) if piece.lines] == [
        LogPiece("writer, attempt 1, failed", ["one", "two", "three"])
    ]
    assert told(world, thread, 2) == ["writer,: two", "writer,: three"]
    assert told(world, thread, 0) == []
    world.fail(thread, agent_player(None), command=world.program("exit 7", name="silent"))
    world.step(thread, agent_player(None), command=world.program(ANSWER, name="good"))
    # The step succeeded; the only log is still that of the failure that logged something.
    assert len(told(world, thread)) == 3
    driver_says(world, thread, "driven\n")
    assert told(world, thread) == ["background: driven"]


def test_keys_are_masked_by_value_and_by_shape(world: World, thread: ThreadId) -> None:
    driver_says(world, thread, "use my-own-secret-1 or sk-0123456789abcdef0123\nnow\n")

    assert told(world, thread, MY_TOKEN="my-own-secret-1") == [
        "background: use [masked] or [masked]",
        "background: now",
    ]


def test_running_agents_keys_are_masked_also_for_a_reader_who_has_not_got_them(
    world: World,
) -> None:
    script = """
    printf '%s\n' "use $MY_TOKEN" "$(printf 'x:%s' "$MY_TOKEN" | base64)" >&2
    echo $$ >>ran
    until [ -e go.writer ]; do sleep 0.02; done
    """
    thread = world.start(world.program(script), workflow=world.put().workflow)
    engine = world.process("thread", "step", thread, env={"MY_TOKEN": "my-own-secret-1"})
    wait_for(world.place / "ran")

    lines = told(world, thread)
    (world.place / "go.writer").touch()
    end(engine)

    assert lines == ["writer: use [masked]", "writer: eDp[masked]"]


def test_private_key_whose_beginning_is_not_asked_for_is_masked(world: World) -> None:
    thread = world.begun()
    key = "-----BEGIN PRIVATE KEY-----\nMIIEsecretsecret\nMIIEmoresecret\n-----END PRIVATE KEY-----"
    driver_says(world, thread, f"before\n{key}\nafter\n")

    assert told(world, thread) == [
        "background: before",
        "background: [masked]",
        "background: after",
    ]
    assert told(world, thread, 3) == ["background: after"]


@pytest.mark.parametrize("words", [("--stream",), ("plan", "resume")])
def test_streamed_agent_output_is_shown_once(
    world: World, slow: ThreadId, words: tuple[str, ...]
) -> None:
    log = driver_says(world, slow, "writer is thinking\n")
    engine = begin(world, slow)

    with driven(world, slow, log, *words):
        streamed = told(world, slow)
    with driven(world, slow, log):
        beside = told(world, slow)
    with driven(world, slow, world.place / "elsewhere", *words):
        foreground = told(world, slow)
    (world.place / "go.writer").touch()
    end(engine)

    line = "writer is thinking"
    assert streamed == [f"background: {line}"]
    assert beside == foreground == [f"background: {line}", f"writer: {line}"]


def test_following_continues_until_no_process_runs(world: World, slow: ThreadId) -> None:
    with lock_drive(world.store, slow, since_ms=1):
        following = Following(world, slow)
        for ran, role in enumerate(("writer", "checker"), start=1):
            # No other process may step it: the driver holds it.
            step = f"import sys; sys.argv[0] = 'uwf'; {STEP}"
            engine = subprocess.Popen(
                [sys.executable, "-c", step, world.store.path, slow, str(world.place)]
            )
            following.wait_for(f"{role}: {role} is thinking")
            assert len((world.place / "ran").read_text().split()) == ran
            (world.place / f"go.{role}").touch()
            assert engine.wait() == 0
        driver_says(world, slow, "half a line")
    assert following.end() == [
        "writer: writer is thinking",
        "writer: writer has thought",
        "checker: checker is thinking",
        "checker: checker has thought",
        "background: half a line",
    ]


# A step of a driver.
STEP = """
import os
from uwf_git.commands.caller import Caller
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.step.step_thread import StepRequest, step_thread
from uwf_git.store.store import open_store
path, thread, cwd = sys.argv[1:]
request = StepRequest(thread, agent_player(None), is_driven=True)
caller = Caller(lambda: 1760000000000, dict(os.environ), cwd)
step_thread(open_store(path, environ=os.environ), caller, request)
"""


def test_following_a_thread_at_rest_shows_its_log_and_ends(world: World, thread: ThreadId) -> None:
    driver_says(world, thread, "a\nb\n")

    assert Following(world, thread).end() == ["background: a", "background: b"]
    assert Following(world, thread, 1).end() == ["background: b"]


def test_following_a_failed_thread_shows_the_failure_and_ends(world: World) -> None:
    thread = world.start(world.program(FAILS), workflow=world.put().workflow)
    world.fail(thread, agent_player(None))

    assert Following(world, thread, 1).end() == ["writer,: three"]


def test_following_ends_when_the_thread_is_paused_at_work(world: World, slow: ThreadId) -> None:
    engine = begin(world, slow)
    following = Following(world, slow)
    following.wait_for("writer: writer is thinking")

    world.pause(slow, now=True)

    assert following.end() == ["writer: writer is thinking"]
    end(engine)
    assert find_status(world.store, slow) == "paused"


def test_agent_that_outlived_its_engine_is_followed(world: World, slow: ThreadId) -> None:
    engine = begin(world, slow)
    engine.send_signal(signal.SIGKILL)
    end(engine)
    following = Following(world, slow)
    following.wait_for("writer: writer is thinking")
    (world.place / "go.writer").touch()

    assert following.end() == ["writer: writer is thinking", "writer: writer has thought"]


def test_log_of_another_user_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = world.start(world.program(FAILS), workflow=world.put().workflow)
    world.fail(thread, agent_player(None))
    driver_says(world, thread, "theirs\n").chmod(0)
    monkeypatch.setattr(os, "open", as_no_root(os.open))

    assert told(world, thread, 1) == [
        "writer,: three",
        "background: [this log is another user's, who alone may read it]",
    ]
    assert told(world, thread, 0) == []


def test_store_in_memory_has_the_logs_of_attempts(world: World) -> None:
    world.store = fresh_store()
    world.reopen()
    thread = world.start(world.program(FAILS), workflow=world.put().workflow)
    assert told(world, thread) == []
    world.fail(thread, agent_player(None))

    assert len(told(world, thread)) == 3
