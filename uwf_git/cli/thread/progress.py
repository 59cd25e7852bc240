"""Progress of a drive: lines of its steps, and below them who is at work."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import RLock
from typing import Any, NamedTuple

from uwf_git.agents.command_line import agent_name
from uwf_git.cli.app.follow_up import follow_up_noted
from uwf_git.cli.output.live import Lines, LiveLines, StepLines, forwarded_output
from uwf_git.cli.output.screen import Screen, describe_usage, note, shorten, tell_local
from uwf_git.cli.session import (
    Session,
    stderr_columns,
    stderr_is_utf8,
    wants_stderr_colour,
    write_stderr,
)
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.run_checks import Secrets
from uwf_git.commands.agent_run.runs import ReportedUsage
from uwf_git.commands.drive_thread import Watcher
from uwf_git.commands.family import name_branch
from uwf_git.commands.inspect.logs import LastLine
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.turn import Played, ThreadResult, Turn
from uwf_git.model.names import ThreadId
from uwf_git.model.text import render_duration, render_time, visible_line
from uwf_git.model.thread import Waiting, add_usage
from uwf_git.store.store import Store
from uwf_git.store.threads.local_files import RUNNING

# Live lines of a drive: one for each role at work, below the lines of the steps that are done.

_MINUTE_S, _MS = 60, 1000

# From here on, in columns, lines have room for tokens too.
_WIDE = 100

# Each agent at work ticks 20 times a second.
_PAUSE_S = 0.1


class _Line(NamedTuple):
    numbers: list[int]
    describe: Callable[[], str]


class AtWork:
    """The live lines of one drive; without *is_live* nothing is shown."""

    def __init__(self, *, is_live: bool) -> None:
        self._is_live = is_live
        self._live = LiveLines()
        self._lock = RLock()
        self._lines: dict[ThreadId, _Line] = {}
        self._hidden = 0
        self._drawn_s = float("-inf")

    @contextmanager
    def above(self) -> Iterator[None]:
        """Let the block write whole lines above the live ones."""
        with self._lock:
            self._live.clear()
            yield
            self._draw()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Show nothing while an agent uses the terminal."""
        with self._lock:
            self._hidden += 1
            self._live.clear()
        try:
            yield
        finally:
            with self._lock:
                self._hidden -= 1

    @contextmanager
    def shown(self, thread: ThreadId, name: str, describe: Callable[[], str]) -> Iterator[None]:
        """Show a line for *thread* during the block; *describe* makes it at each look.

        *name* is that of a branch: ``2.0 tester`` stands before ``10.0 tester``.
        """
        with self._lock:
            numbers = name.partition(" ")[0].split(".") if name else []
            self._lines[thread] = _Line([int(each) for each in numbers], describe)
            self._draw()
        try:
            yield
        finally:
            with self._lock:
                del self._lines[thread]
                self._draw()

    def tick(self) -> None:
        """Draw the lines again, some times a second at most."""
        with self._lock:
            if time.monotonic() - self._drawn_s >= _PAUSE_S:
                self._draw()

    def _draw(self) -> None:
        if self._is_live and not self._hidden:
            self._drawn_s = time.monotonic()
            lines = sorted(self._lines.values(), key=lambda line: line.numbers)
            self._live.show([line.describe() for line in lines])


def _tell_account(turn: Turn, reported: ReportedUsage, seconds: int) -> str:
    """Return what a turn has taken by now; tokens and cost are the sums of the thread.

    Where lines are short the cost alone, if it is known: the log needs the room.
    """
    parts = [tell_elapsed(seconds), f"attempt {turn.attempt}"]
    spent: dict[str, Any] = dict(turn.present.usage)
    told = describe_usage(add_usage(spent, reported.read()), short=True)
    told = told if stderr_columns() >= _WIDE else told[-1:]
    return ", ".join([*parts, *(["so far " + ", ".join(told)] if told else [])])


def tell_elapsed(seconds: int) -> str:
    """Return a duration without tenths: it is drawn anew each second."""
    return f"{seconds} s" if seconds < _MINUTE_S else render_duration(seconds * _MS)


# Progress of a drive on standard error.
#
# A terminal gets a live line for each role at work. Elsewhere only whole lines are written: one
# per step, and for a long step now and then one that shows it is still running. Branches are
# stepped at once, in threads of Python; lines about one begin with its name.

_TIME = "2026-11-22T14:25:05Z"

# The agent of the kit that asks at the terminal itself.
_ASKS_HERE = "uwf-human"

_FIRST_SIGN_S = 30.0
_LONGEST_SILENCE_S = 600.0


class Progress:
    """Prints the progress of a drive; several turns may be played at once."""

    def __init__(
        self, session: Session, store: Store, *, stream: bool = False, timestamps: bool = False
    ) -> None:
        self._session, self._store = session, store
        self._stream, self._timestamps = stream, timestamps
        is_lined_up = session.stderr_is_tty and not stream
        self._is_live = is_lined_up and session.environ.get("TERM") != "dumb"
        self._at_work = AtWork(is_live=self._is_live)
        before = len(_TIME) + 1 if timestamps else 0
        screen = Screen(has_colour=wants_stderr_colour(session.environ), is_utf8=stderr_is_utf8())
        self._steps = StepLines(screen, stderr_columns, before=before) if is_lined_up else None
        self._lines = Lines()
        self._names: dict[ThreadId, str] = {}
        self._since_ms: dict[ThreadId, int] = {}
        self._took_ms: dict[ThreadId, int] = {}

    def tell(self, line: str) -> None:
        """Print a line."""
        with self._at_work.above():
            self._lines.end()
            note(self._timed(line))

    def _name(self, thread: ThreadId) -> str:
        """Return the name of a branch; "" of the thread that is driven."""
        if thread not in self._names:
            self._names[thread] = name_branch(self._store, thread)
        return self._names[thread]

    def about(self, thread: ThreadId, line: str) -> str:
        name = self._name(thread)
        return f"{name}: {line}" if name else line

    def play(self, turn: Turn) -> Played:
        """Run the agent of a turn, and show its progress."""
        played = self._play(turn)
        if turn.answered is None:
            self._took_ms[turn.thread] = played.duration_ms
        if played.left_running:
            self.tell(self.about(turn.thread, played.describe_left(turn.role)))
        return played

    def _play(self, turn: Turn) -> Played:
        # Once its branches are joined, the thread knows no names of them.
        self._name(turn.thread)
        if turn.answered is None:
            self._since_ms[turn.thread] = self._session.now_ms()
        if self._steps is not None:
            self._steps.make_room(turn.present.binding)
        if self._stream:
            with forwarded_output(self._lines, name=self._name(turn.thread)) as output:
                return agent_player(output.stderr, on_stdout=output.stdout)(turn)
        if turn.answered is None and agent_name(turn.agent.payload["command"]) == _ASKS_HERE:
            # The agent uses the terminal where the live lines would be.
            with self._at_work.hidden():
                return agent_player(None)(turn)
        with self._shown(turn) as (on_stderr, on_tick):
            return agent_player(on_stderr, on_tick=on_tick)(turn)

    @property
    def watcher(self) -> Watcher:
        """Return the callbacks that report steps and waits."""
        return Watcher(self._on_step, self._on_retry, self._on_wait, self._on_branch_failed)

    @contextmanager
    def _shown(self, turn: Turn) -> Iterator[tuple[Callable[[bytes], None], Callable[[], None]]]:
        # What the environment has of secrets is masked already.
        log, signs = LastLine(Secrets(())), _Signs()
        reported, since_ms = ReportedUsage(turn.run_dir.step_dir), self._since_ms[turn.thread]

        def give_sign() -> None:
            seconds = signs.find_due()
            if seconds is not None:
                said = _after_colon(log.find())
                line = f"{turn.role}, {tell_elapsed(seconds)}, attempt {turn.attempt}{said}"
                self.tell(shorten(visible_line(self.about(turn.thread, line)), 200))

        lines = self._steps
        if not self._is_live or lines is None:
            yield log.add, give_sign
            return
        name = self._name(turn.thread)
        who = "" if not name or name.endswith(turn.role) else f"{turn.role}, "

        def describe() -> str:
            seconds = (self._session.now_ms() - since_ms) // _MS
            account = _tell_account(turn, reported, seconds)
            said = f"{who}{account}{_after_colon(log.find())}"
            number = turn.present.depth + 1
            return lines.format(lines.screen.mark(RUNNING), name or turn.role, said, number=number)

        with self._at_work.shown(turn.thread, name, describe):
            yield log.add, self._at_work.tick

    def _on_step(self, stepped: ThreadResult) -> None:
        gone_ms = self._session.now_ms() - self._since_ms.get(stepped.thread, 0)
        # A driver that died may have begun the run.
        seconds = max(gone_ms, self._took_ms.get(stepped.thread, 0)) / _MS
        line = _describe_step(stepped, seconds)
        if not line:
            follow_up_noted(self._store, self._session.environ, self.tell)
            return
        who, said = (stepped.thread, stepped.role or ""), stepped.said
        if stepped.status in {"waiting", "split"}:
            self._tell_event(who, line, stepped.status, said)
            return
        status = "failed" if stepped.status == "failed" else "completed"
        if stepped.is_rejected and stepped.status == "ready":
            status = "again"
        tail = f"{seconds:.1f} s" if stepped.role is not None else ""
        self._tell_event(who, line, status, said, number=stepped.depth, tail=tail)

    def _tell_event(
        self,
        who: tuple[ThreadId, str],
        line: str,
        status: str,
        said: str,
        *,
        number: int | None = None,
        tail: str = "",
    ) -> None:
        """Print what happened to the thread and role *who*: *line*, or the rest on a terminal."""
        thread, role = who
        lines = self._steps
        if lines is None:
            self.tell(self.about(thread, line))
        else:
            name = self._name(thread) or role
            told = lines.format(lines.screen.mark(status), name, said, number=number, tail=tail)
            with self._at_work.above():
                write_stderr(f"{self._timed(told)}\n")
        follow_up_noted(self._store, self._session.environ, self.tell)

    def _on_retry(self, failure: TurnFailed, seconds: float) -> None:
        then, tail = f"trying again in {seconds:g} s", f" again in {seconds:g} s"
        if failure.is_given_up:
            then, tail = "given up, and the thread goes on", " given up"
        who = (failure.facts["thread"], failure.facts["role"])
        said = f"try {failure.facts['attempt']}: {failure.reason}"
        self._tell_event(who, f"{failure.message}; {then}", "again", said, tail=tail)

    def _on_wait(self, thread: ThreadId, waiting: Waiting) -> None:
        tell_time = render_time if self._steps is None else tell_local
        until = "" if waiting.until is None else f" until {tell_time(waiting.until)}"
        said = f"waits{until}: its agent hit a limit"
        self._tell_event((thread, waiting.role), f"{waiting.role} {said}", "waiting", said)

    def _on_branch_failed(self, failure: TurnFailed) -> None:
        line, tail = failure.message, ""
        if failure.is_given_up:
            line, tail = f"{line}; given up, and the thread goes on", "given up"
        self._tell_event((failure.facts["thread"], ""), line, "failed", failure.reason, tail=tail)

    def _timed(self, line: str) -> str:
        if not self._timestamps:
            return line
        moment = datetime.fromtimestamp(self._session.now_ms() / _MS, tz=UTC)
        return f"{moment:%Y-%m-%dT%H:%M:%SZ} {line}"


def _describe_step(stepped: ThreadResult, seconds: float) -> str:
    """Return what a step did, as one line; "" for an event that has no line."""
    if stepped.status == "waiting":
        return f"{stepped.role} {stepped.said}"
    if stepped.role is not None:
        return f"step {stepped.depth} {stepped.role}: {stepped.said} ({seconds:.1f} s)"
    if stepped.status == "split":
        return f"split: {stepped.said}"
    return f"step {stepped.depth} {stepped.said}" if stepped.status == "ready" else ""


class _Signs:
    """When the next sign of life is due: soon at first, then less and less often."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._next_s: float = _FIRST_SIGN_S

    def find_due(self) -> int | None:
        """Return the elapsed seconds if a sign is due."""
        gone_s = time.monotonic() - self._began
        if gone_s < self._next_s:
            return None
        self._next_s = gone_s + min(gone_s, _LONGEST_SILENCE_S)
        return int(gone_s)


def _after_colon(said: str) -> str:
    return f": {said}" if said else ""
