"""Progress: how a drive goes, on standard error, while it goes.

Owns: the lines, and on a terminal the one that tells what is going on now.
Knows nothing of: when a drive stops, and why.
Always true: where it is no terminal nothing but whole lines is written: one for each step, and for
one that takes long a sign of life now and then. The session's clock is not asked for those.
"""

import codecs
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from uwf_git.cli.agent_log import COLOUR, forwarded_output
from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.on_event import tell_events
from uwf_git.cli.render import note
from uwf_git.cli.settings import Session
from uwf_git.cli.status_line import StatusLine
from uwf_git.cli.text_width import shorten
from uwf_git.cli.visible import visible_line
from uwf_git.commands.agent_name import agent_name
from uwf_git.commands.drive_thread import Watcher
from uwf_git.commands.play_agent import agent_player
from uwf_git.commands.stepped import Stepped
from uwf_git.commands.thread_step import TurnFailed
from uwf_git.commands.turn import Played, Turn
from uwf_git.model.thread import Waiting
from uwf_git.model.time_text import render_duration, render_time
from uwf_git.store.store import Store

_MS = 1000
_MINUTE_S = 60
_LINE_ENDS = re.compile("[\r\n]")

# A line that is longer is shown only as far as a terminal is wide.
_LONGEST_TAIL = 4096

# The agent of the kit that asks at the terminal itself.
_ASKS_HERE = "uwf-human"

_FIRST_SIGN_S = 30.0
_LONGEST_SILENCE_S = 600.0
_LONGEST_SIGN = 200


class Progress:
    """Tells how a drive goes."""

    def __init__(
        self, session: Session, store: Store, *, stream: bool = False, timestamps: bool = False
    ) -> None:
        self._session, self._store = session, store
        self._stream, self._timestamps = stream, timestamps
        self._is_live = (
            session.stderr_is_tty and not stream and session.environ.get("TERM") != "dumb"
        )
        self._line = StatusLine()
        self._since_ms = 0

    def tell(self, line: str) -> None:
        """Tell a line."""
        self._line.clear()
        note(f"{self._time()} {line}" if self._timestamps else line)

    def play(self, turn: Turn) -> Played:
        """Play a turn by its command, and show how it goes."""
        self._since_ms = self._session.now_ms()
        if self._stream:
            with forwarded_output() as output:
                return agent_player(output.stderr, on_stdout=output.stdout)(turn)
        if agent_name(turn.agent.payload["command"]) == _ASKS_HERE:
            # Somebody reads and types where the line would be.
            return agent_player(None)(turn)
        with self._shown(turn) as (on_stderr, on_tick):
            return agent_player(on_stderr, on_tick=on_tick)(turn)

    @property
    def watcher(self) -> Watcher:
        """Who is told of steps and waits."""
        return Watcher(self._on_step, self._on_retry, self._on_wait)

    @contextmanager
    def _shown(self, turn: Turn) -> Iterator[tuple[Callable[[bytes], None], Callable[[], None]]]:
        log, signs = _LastLine(), _Signs()

        def describe(seconds: int) -> str:
            said = f": {log.text}" if log.text else ""
            return f"{turn.role}, {_elapsed(seconds)}, attempt {turn.attempt}{said}"

        def draw() -> None:
            self._line.show(describe((self._session.now_ms() - self._since_ms) // _MS))

        def give_sign() -> None:
            seconds = signs.find_due()
            if seconds is not None:
                self.tell(shorten(visible_line(describe(seconds)), _LONGEST_SIGN))

        if not self._is_live:
            yield log.add, give_sign
            return
        draw()
        try:
            yield log.add, draw
        finally:
            self._line.clear()

    def _on_step(self, stepped: Stepped) -> None:
        if stepped.status == "waiting":
            self.tell(f"{stepped.role} {stepped.said}")
        elif stepped.role is not None:
            seconds = (self._session.now_ms() - self._since_ms) / _MS
            self.tell(f"step {stepped.depth} {stepped.role}: {stepped.said} ({seconds:.1f} s)")
            pack_when_due(self._session, self._store)
        tell_events(self._store, self._session.environ)

    def _on_retry(self, failure: TurnFailed, seconds: float) -> None:
        self.tell(f"{failure.message}; trying again in {seconds:g} s")
        tell_events(self._store, self._session.environ)

    def _on_wait(self, waiting: Waiting) -> None:
        until = "" if waiting.until is None else f" until {render_time(waiting.until)}"
        self.tell(f"{waiting.role} waits{until}: its agent hit a limit")
        tell_events(self._store, self._session.environ)

    def _time(self) -> str:
        moment = datetime.fromtimestamp(self._session.now_ms() / _MS, tz=UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class _Signs:
    """When a sign of life is due: soon at first, then less and less often."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._next_s: float = _FIRST_SIGN_S

    def find_due(self) -> int | None:
        """Give how many seconds have gone, if a sign is due."""
        gone_s = time.monotonic() - self._began
        if gone_s < self._next_s:
            return None
        self._next_s = gone_s + min(gone_s, _LONGEST_SILENCE_S)
        return int(gone_s)


class _LastLine:
    """The last line of a log that says anything."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._tail = ""
        self.text = ""

    def add(self, piece: bytes) -> None:
        lines = _LINE_ENDS.split(self._tail + self._decoder.decode(piece))
        self._tail = lines[-1][:_LONGEST_TAIL]
        for line in reversed(lines):
            said = COLOUR.sub("", line[:_LONGEST_TAIL]).strip()
            if said:
                self.text = said
                return


def _elapsed(seconds: int) -> str:
    # Without its tenths: the line is drawn once a second.
    return f"{seconds} s" if seconds < _MINUTE_S else render_duration(seconds * _MS)
