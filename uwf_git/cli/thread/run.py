"""`uwf thread run` and `uwf thread wait`, and what `uwf run` shares with them."""

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from uwf_git.cli.app.follow_up import follow_up_noted, note_next, stop_after, tell_stop, view_result
from uwf_git.cli.app.parameters import Seconds, agents_option, text_argument, with_options
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import caller_of, sigterm_as_interrupt, terminal_caller
from uwf_git.cli.output.screen import (
    Painted,
    count_by_status,
    describe_usage,
    emit,
    note,
    screen_of,
    without_none,
)
from uwf_git.cli.session import Session, with_typed_store
from uwf_git.cli.thread.progress import Progress
from uwf_git.cli.thread.step import jobs_option
from uwf_git.commands.background import (
    AtRest,
    DriverRequest,
    WaitRequest,
    start_driver,
    wait_for_threads,
)
from uwf_git.commands.drive_thread import Driven, DriveRequest, hold_drive
from uwf_git.commands.inspect.list import count_branches, is_stuck, view_urgent
from uwf_git.commands.inspect.show import Stop
from uwf_git.commands.step.step_thread import StepRequest
from uwf_git.commands.turn.branches import ThreadNotActive
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.commands.turn.flow import CLAIM, add_branches
from uwf_git.commands.turn.next_move import Steered
from uwf_git.commands.turn.turn import Player
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.event_folds import count_steps
from uwf_git.model.names import ThreadId
from uwf_git.model.text import first_line, quote_path, render_duration, visible_line
from uwf_git.model.thread import Waiting
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import NoSuchThread
from uwf_git.store.threads.history import read_snapshot
from uwf_git.store.threads.naming import read_short_ids

if TYPE_CHECKING:
    from uwf_git.commands.fleet.shared_drive import Share

# What `uwf run` and `uwf thread run` share: options, the drive itself, its result.
#
# Whatever stopped a drive, the document says where the thread stands; the exit status is 0 unless
# an agent failed or the thread was killed.

DRIVE_EXITS = {
    0: "the thread has ended, or stopped for a person, a pause or a limit (an option's as well)",
    1: "it could not be driven (it had failed, waited, was paused or at a limit), or was killed",
    3: "an agent failed, with its retries if it has any: `uwf thread retry`",
    4: "another process works on the thread",
}


class DriveOptions(NamedTuple):
    """The options of a drive."""

    until: str | None = None
    trust: bool = False
    wait: bool = False
    stream: bool = False
    background: bool = False
    timestamps: bool = False
    jobs: int = 4
    """How many branches are at work at once."""

    claim: bool = False
    """Claim the thread at its hub, and push each step there."""

    def words(self) -> list[str]:
        """Return the arguments that mean the same to another process, without --background."""
        flags = [name for name in ("trust", "wait", "stream", "claim") if getattr(self, name)]
        words = [f"--jobs={self.jobs}", *(f"--{name}" for name in flags)]
        return words if self.until is None else [*words, f"--until={self.until}"]


def _read_how(given: dict[str, Any]) -> None:
    how = {name: given.pop(name) for name in DriveOptions._fields}
    if how["until"] is not None:
        text_argument(how["until"], "--until")
    given["how"] = DriveOptions(**how)


drive_options = with_options(
    _read_how,
    jobs_option,
    click.option("--until", metavar="ROLE", help="Stop when this role has taken a step."),
    click.option(
        "--wait",
        is_flag=True,
        help="Sleep until the end of a usage limit that an agent hits; if no end is known, sleep "
        "one minute, then two, and so on up to an hour.",
    ),
    click.option("--trust", is_flag=True, help="Let the thread's own commands run in this store."),
    click.option(
        "--stream", is_flag=True, help="Show what the agents print, on standard error, as it comes."
    ),
    click.option(
        "--background",
        is_flag=True,
        help="Return at once; see `uwf thread wait` and `uwf thread logs`. Of a thread that has "
        "ended, the end is told.",
    ),
    click.option(
        "--claim",
        is_flag=True,
        help="Claim the thread at the remote, so that no other machine runs it meanwhile, and push "
        "each step.  [default: uwf.claim]",
    ),
    click.option(
        "--timestamps", is_flag=True, help="Begin each line of progress with the time (UTC)."
    ),
)
"""Add the argument ``how: DriveOptions`` to a verb, from its options."""


class Driving(NamedTuple):
    """A thread that is to be driven."""

    thread: str
    how: DriveOptions
    agents: tuple[str, ...] = ()
    workdir: str | None = None
    max_steps: int | None = None

    share: "Share | None" = None
    """How the thread is shared with other machines; None: as --claim and uwf.claim say."""


def drive_and_tell(session: Session, store: Store, driving: Driving) -> None:
    """Drive a thread here, or in the background, and print where it stands then."""
    if driving.how.background:
        # Of a thread that has ended the end is told.
        with suppress(ThreadNotActive):
            _start(session, store, driving)
            return
    driven = drive_shown(session, store, driving)
    stop = stop_after(session, store, driven.last)
    told = (lambda _: describe_end(session, store, driven)) if session.is_screen else None
    emit(session, _document(driven, stop), text=told)
    raise_if_failed(driven)
    if driven.stopped != "end":
        # What reads a thread that has ended stands above.
        tell_stop(session, stop)


def drive_shown(
    session: Session,
    store: Store,
    driving: Driving,
    *,
    on_change: Callable[[], None] = lambda: None,
    attend: Callable[[Player], Player] = lambda play: play,
) -> Driven:
    """Drive a thread here, and show its progress; what ended the drive is not yet raised.

    *on_change* is called after each step, failed try and wait that another one follows. *attend*
    makes of the player of its turns another one.
    """
    how = driving.how
    progress = Progress(session, store, stream=how.stream, timestamps=how.timestamps)
    choice = Choice(driving.agents, session.agent, how.trust)
    step = StepRequest(driving.thread, attend(progress.play), choice, driving.workdir, how.jobs)
    # Report the start before the first step.
    follow_up_noted(store, session.environ)
    request = DriveRequest(step, driving.max_steps, how.until, how.wait, may_have_ended=True)
    watcher = progress.watcher.then(on_change)
    hold = _find_hold(session, store, driving)
    with ExitStack() as own, sigterm_as_interrupt():
        # Held until a failure was reported: when `uwf thread wait` returns, it is in the log.
        drive = hold(store, terminal_caller(session), request, watcher=watcher)
        driven: Driven = (session.held or own).enter_context(drive).run()
    if driven.failure is not None and (how.timestamps or driven.stopped != "failed"):
        # The final failure is reported as an error, which has no time.
        progress.tell(progress.about(driven.failure.facts["thread"], driven.failure.message))
    if not session.is_screen:
        _tell_end(progress, store, driven)
    return driven


def _find_hold(session: Session, store: Store, driving: Driving) -> Callable[..., Any]:
    """Return what holds the thread for the drive: here, or at its hub as well."""
    share = driving.share
    if share is None and not (driving.how.claim or store.config.get_flag(CLAIM, default=False)):
        return hold_drive
    from uwf_git.cli.remote import confirm_first_push  # noqa: PLC0415 (imports all that fetches and pushes)
    from uwf_git.commands.fleet.shared_drive import Share, hold_shared_drive  # noqa: PLC0415 (as above)

    if share is None:
        # What is not here is fetched.
        with suppress(NoSuchThread):
            confirm_first_push(session, store, None, [driving.thread])
    return partial(hold_shared_drive, share=share or Share())


def raise_if_failed(driven: Driven) -> None:
    """Raise what ended a drive."""
    if driven.stopped == "failed" and driven.failure is not None:
        raise driven.failure
    if driven.stopped == "killed":
        thread = driven.last.thread
        by, reason = driven.steered or ("", "")
        raise Refused(
            f"thread {thread} was killed by {by}" + (f": {first_line(reason)}" if reason else ""),
            code="thread-killed",
            hint=f"`uwf thread fork {thread}` continues it in a new thread",
            thread=thread,
            by=by,
        )


def _start(session: Session, store: Store, driving: Driving) -> None:
    def argv(thread: ThreadId) -> Sequence[str]:
        # -P: modules in the working directory of the agents are not imported.
        return [sys.executable, "-P", "-m", "uwf_git", "thread", "run", thread, *_words(driving)]

    how = driving.how
    request = DriverRequest(driving.thread, argv, how.until, how.wait, driving.agents)
    driver = start_driver(store, caller_of(session), request)
    emit(session, driver._asdict())
    thread = driver.thread
    note(
        f"next: `uwf thread wait {thread}` waits until it stops; `uwf thread logs {thread}` shows "
        "its output"
    )


def _words(driving: Driving) -> list[str]:
    words = ["--timestamps", "--format=text", *driving.how.words()]
    words += [f"--agent={agent}" for agent in driving.agents]
    options = {"workdir": driving.workdir, "max-steps": driving.max_steps}
    return [*words, *(f"--{name}={each}" for name, each in options.items() if each is not None)]


def describe_end(session: Session, store: Store, driven: Driven) -> Painted:
    """Return how a drive ended, as a person reads it: status, steps, time, tokens and cost."""
    screen, last = screen_of(session), driven.last
    status, told = _describe_extent(store, driven)
    mark = screen.name_status(status)
    if driven.steered is not None:
        told = f"{_tell_who(driven.steered)} {told}"
    with suppress(StoreDamaged):
        snapshot = read_snapshot(store, last.commit)
        present = add_branches(store, snapshot, snapshot.get_present())
        told += f" in {render_duration(present.execution_ms)}"
        told += "".join(f" · {part}" for part in describe_usage(present.usage, short=True))
    thread = read_short_ids(store).shorten(last.thread)
    ways = [with_typed_store(f"uwf thread {verb} {thread}") for verb in ("read", "graph")]
    where = "    ".join(ways)
    return Painted(f"{screen.paint(mark.text, mark.style)} {visible_line(told)}\n  {where}")


def _describe_extent(store: Store, driven: Driven) -> tuple[str, str]:
    """Return the status in a word, and how far the thread has come.

    Of a thread that has split, both are about its branches.
    """
    last = driven.last
    extent = f"after {count_steps(driven.steps)} of this run"
    with suppress(StoreDamaged):
        snapshot = read_snapshot(store, last.commit)
        if snapshot.get_present().split is None:
            return last.status, f"after {count_steps(last.depth)}"
        if last.status != "split":
            return last.status, extent
        counts = count_branches(store, snapshot)
        status = view_urgent(last.status, counts).get("branchStatus", last.status)
        return status, f"(split: {count_by_status(counts)}) {extent}"
    return last.status, extent


def _tell_who(steered: Steered) -> str:
    reason = first_line(steered.reason)
    return f"by {steered.by}" + (f": {reason}," if reason else "")


def _tell_end(progress: Progress, store: Store, driven: Driven) -> None:
    last = driven.last
    who = "" if driven.steered is None else f" {_tell_who(driven.steered)}"
    status, extent = _describe_extent(store, driven)
    progress.tell(f"{status}{who} {extent}; look at it with")
    place = "archive" if last.status in {"completed", "killed"} else "threads"
    note(f"uwf thread read {last.thread}")
    note(f"git -C {quote_path(store.path)} log --graph refs/{place}/{last.thread}")


def _document(driven: Driven, stop: Stop) -> dict[str, object]:
    document = view_result(driven.last) | {"role": driven.last.role, "next": stop.next}
    document |= {"steps": driven.steps, "stopped": driven.stopped}
    if driven.waiting is not None:
        document["waiting"] = waiting_document(driven.waiting)
    return document


def waiting_document(waiting: Waiting) -> dict[str, object]:
    """Return what a thread waits for as a document; no ``until`` if a person is to answer."""
    return without_none({"role": waiting.role, "until": waiting.until})


@verb(
    "uwf thread run 01J7K9M2",
    "uwf thread run 01J7K9M2 --until reviewer",
    "uwf thread run 01J7K9M2 --agent developer=uwf-cursor --agent reviewer=uwf-claude",
    "uwf thread run 01J7K9M2 --max-steps 3 --wait --background",
    exits=DRIVE_EXITS,
)
@click.argument("thread")
@agents_option("The agent of a role, or of every role, for this run; may be repeated.")
@click.option("--workdir", metavar="PATH", help="Where the agents of this thread run from now on.")
@click.option(
    "--max-steps",
    "--max-rounds",
    "max_steps",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop after this many steps of this run; a step that was stopped counts as well.",
)
@drive_options
def run_command(
    session: Session,
    *,
    thread: str,
    agents: tuple[str, ...],
    workdir: str | None,
    max_steps: int | None,
    how: DriveOptions,
) -> None:
    """Drive a thread, step after step, until it stops.

    It stops at the end, at a person's turn, when the thread is paused or killed, when an agent has
    used up its retries, and at a limit. The document says which (`stopped`), and where the thread
    stands. An --agent CMD without a ROLE plays every role but those that are bound, and not as a
    default, to human, uwf-human, uwf-shell or uwf-check.

    No other process can step the thread meanwhile. Ctrl-C ends the running agent, and records its
    output so far; so does closing the terminal, unless it runs in the background. Another run
    continues from there.
    """
    store = session.open_store()
    drive_and_tell(session, store, Driving(thread, how, agents, workdir, max_steps))


@verb(
    "uwf thread wait 01J7K9M2",
    "uwf thread wait 01J7K9M2 01J7KB4Q --timeout 600",
    exits={
        0: "all have stopped, and none failed or was killed",
        1: "a thread was killed, does not exist, waits for this very command, or is stuck: its "
        "next step or that of a branch cannot be decided",
        3: "an agent of a thread or of a branch failed, after its retries",
        4: "the timeout is over, and a thread is still running",
    },
)
@click.argument("threads", nargs=-1, required=True, metavar="THREAD...")
@click.option(
    "--timeout",
    type=Seconds(min=0),
    metavar="SECONDS",
    help="The longest time to wait.  [default: no limit]",
)
def wait_command(session: Session, threads: tuple[str, ...], timeout: float | None) -> None:
    """Wait until no process works on the threads.

    That is when a thread has ended, waits for a person, is paused or has failed, or when it is
    ready and not being driven or stepped. An agent whose engine was killed is a process at work,
    and so is whatever works on a branch of the thread.
    The result has a row for each thread, in the order in which they stopped; after a timeout, only
    for the threads that stopped. The row of a split thread counts its branches by status. What
    holds a thread up, such as a limit, is in `heldBy`.
    """
    rows: list[AtRest] = []
    store = session.open_store()
    try:
        request = WaitRequest(threads, timeout, session.environ)
        wait_for_threads(store, request, on_rest=rows.append)
    finally:
        if rows:
            emit(session, [_row(row) for row in rows])
        for row in rows:
            note_next(session, store, row.thread, is_called=True)
    # A branch that was killed was given up: its thread goes on.
    ends: set[str] = {"failed" if "failed" in row.branches else row.status for row in rows}
    ends |= {"stuck" for row in rows if any(map(is_stuck, row.held))}
    # If threads end differently, the first of these decides the exit status.
    for status, exit_status in (("failed", 3), ("killed", 1), ("stuck", 1)):
        if status in ends:
            raise click.exceptions.Exit(exit_status)


def _row(rest: AtRest) -> dict[str, Any]:
    row = view_result(rest)
    if rest.branches:
        row |= {"branches": dict(rest.branches), **view_urgent(rest.status, rest.branches)}
    if rest.waiting is not None:
        row["waiting"] = waiting_document(rest.waiting)
    if rest.held:
        row["heldBy"] = rest.held
    return row
