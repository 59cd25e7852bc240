"""What `uwf run` and `uwf thread run` share: options, the drive itself, what is told of it.

Owns: their words. Knows nothing of: how a thread comes about.
Always true: whatever stopped a drive, the document says where the thread stands; the exit status
is 0 unless an agent failed or somebody ended the thread.
"""

import shlex
import sys
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, NamedTuple

import click

from uwf_git.cli.asked_to_end import taken_as_interrupt
from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.calling import caller_of
from uwf_git.cli.on_event import tell_events
from uwf_git.cli.parameters import text_argument
from uwf_git.cli.progress import Progress
from uwf_git.cli.render import emit, note
from uwf_git.cli.settings import Session
from uwf_git.cli.terminal_caller import terminal_caller
from uwf_git.commands.choose_agent import Choice
from uwf_git.commands.drive_thread import Driven, DriveRequest, drive_thread
from uwf_git.commands.thread_step import StepRequest
from uwf_git.engine.subject import count_steps
from uwf_git.errors import Refused
from uwf_git.model.thread import Waiting
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.store import Store

DRIVE_EXITS = {
    1: "it cannot be driven, or somebody has killed it",
    3: "an agent failed, and its retries are used up: `uwf thread retry`",
    4: "somebody else is at work on the thread",
}


class DriveOptions(NamedTuple):
    """How a thread is driven, as it was typed."""

    until: str | None
    trust: bool
    wait: bool
    stream: bool
    background: bool
    timestamps: bool

    def words(self) -> list[str]:
        """Give the words that say the same to another process, but for --background."""
        flags = {
            "--trust": self.trust,
            "--wait": self.wait,
            "--stream": self.stream,
        }
        words = [flag for flag, is_on in flags.items() if is_on]
        return words if self.until is None else [*words, f"--until={self.until}"]


def drive_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the argument ``how: DriveOptions``, from its options."""

    def with_how(*args: Any, until: str | None, **others: Any) -> Any:
        flags = {name: others.pop(name) for name in DriveOptions._fields if name in others}
        if until is not None:
            text_argument(until, "--until")
        return function(*args, how=DriveOptions(until, **flags), **others)

    wrapped: Any = update_wrapper(with_how, function)
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    made: Callable[..., Any] = wrapped
    return made


_OPTIONS = (
    click.option("--until", metavar="ROLE", help="Stop when this role has taken a step."),
    click.option(
        "--wait", is_flag=True, help="Sleep until the end of a usage limit that an agent hits."
    ),
    click.option("--trust", is_flag=True, help="Let the thread's own commands run in this store."),
    click.option(
        "--stream", is_flag=True, help="Show what the agents print, on standard error, as it comes."
    ),
    click.option(
        "--background",
        is_flag=True,
        help="Return at once; `uwf thread wait` and `uwf thread logs` tell how it goes.",
    ),
    click.option(
        "--timestamps", is_flag=True, help="Begin each line of progress with the time (UTC)."
    ),
)


class ThreadKilled(Refused):
    """Somebody ended the thread while it was driven."""

    code = "thread-killed"

    def __init__(self, driven: Driven) -> None:
        thread = driven.last.thread
        super().__init__(
            f"thread {thread} was killed while it ran: {driven.last.said}",
            hint=f"`uwf thread show {thread}` tells by whom",
            thread=thread,
        )


class Driving(NamedTuple):
    """A thread that is to be driven."""

    thread: str
    how: DriveOptions
    agent: str | None = None
    workdir: str | None = None
    max_steps: int | None = None
    """How many steps this drive may take."""


def drive_and_tell(session: Session, store: Store, driving: Driving) -> None:
    """Drive a thread here, or in the background, and print where it stands then.

    Raises:
        TurnFailed: an agent failed; the document is printed all the same.
        ThreadKilled: somebody ended it; likewise.
        What ``drive_thread`` and ``start_driver`` raise.
    """
    if driving.how.background:
        _start(session, store, driving)
        return
    how = driving.how
    progress = Progress(session, store, stream=how.stream, timestamps=how.timestamps)
    choice = Choice(driving.agent, session.agent, how.trust)
    step = StepRequest(driving.thread, progress.play, choice, driving.workdir)
    # That it has begun need not wait for the first step.
    tell_events(store, session.environ)
    with taken_as_interrupt():
        driven = drive_thread(
            store,
            terminal_caller(session),
            DriveRequest(step, driving.max_steps, how.until, how.wait),
            watcher=progress.watcher,
        )
    if driven.failure is not None and (how.timestamps or driven.stopped != "failed"):
        # That it failed for good is told as an error, which has no time.
        progress.tell(driven.failure.message)
    _tell_end(progress, store, driven)
    emit(session, _document(driven))
    if driven.stopped == "failed" and driven.failure is not None:
        raise driven.failure
    if driven.stopped == "killed":
        raise ThreadKilled(driven)
    pack_when_due(session, store)


def _start(session: Session, store: Store, driving: Driving) -> None:
    from uwf_git.commands.start_driver import (  # noqa: PLC0415 (drivers need not know how they are started)
        DriverRequest,
        start_driver,
    )

    def argv(thread: ThreadId) -> Sequence[str]:
        # -P: what lies in the directory of the agents is not imported.
        return [sys.executable, "-P", "-m", "uwf_git", "thread", "run", thread, *_words(driving)]

    how = driving.how
    driver = start_driver(
        store, caller_of(session), DriverRequest(driving.thread, argv, how.until, how.wait)
    )
    emit(session, driver._asdict())


def _words(driving: Driving) -> list[str]:
    words = ["--timestamps", "--format=text", *driving.how.words()]
    if driving.agent is not None:
        words.append(f"--agent={driving.agent}")
    if driving.workdir is not None:
        words.append(f"--workdir={driving.workdir}")
    if driving.max_steps is not None:
        words.append(f"--max-steps={driving.max_steps}")
    return words


def _tell_end(progress: Progress, store: Store, driven: Driven) -> None:
    last = driven.last
    progress.tell(f"{last.status} after {count_steps(last.depth)}; look at it with")
    place = "archive" if last.status in {"completed", "killed"} else "threads"
    note(f"uwf thread read {last.thread}")
    note(f"git -C {shlex.quote(store.path)} log --graph refs/{place}/{last.thread}")


def _document(driven: Driven) -> dict[str, object]:
    last = driven.last
    document: dict[str, object] = {
        "workflow": last.workflow,
        "thread": last.thread,
        "head": last.head,
        "status": last.status,
        "role": last.role,
        "steps": driven.steps,
        "stopped": driven.stopped,
    }
    if driven.waiting is not None:
        document["waiting"] = waiting_document(driven.waiting)
    return document


def waiting_document(waiting: Waiting) -> dict[str, object]:
    """Give what a thread waits for as a document; ``until`` is absent where a person is."""
    until = {} if waiting.until is None else {"until": waiting.until}
    return {"role": waiting.role, **until}
