"""How long a program that has told of its stop may stay open; whoever drives counts it.

A notice alone ends nothing: the driver ends the program only if its report is there and fits.
"""

import threading
import time
from collections.abc import Callable

from uwf_git.plan.notice import Notice, TurnAtWork, counts_for

GRACE_S = 10.0
"""The grace, unless a setting says otherwise; 0: a program is never ended."""


class StopGrace:
    """The grace of the turn at work. The stop server's thread may call ``take``.

    A tool stops at every turn of a conversation, and tells it twice: each notice begins the grace
    anew, so that a program which goes on is left alone.
    """

    def __init__(
        self, grace_s: float = GRACE_S, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Count *grace_s* seconds of *clock*."""
        self._grace_s, self._clock = grace_s, clock
        self._lock = threading.Lock()
        self._turn: TurnAtWork | None = None
        self._ends: float | None = None

    def begin(self, turn: TurnAtWork | None) -> None:
        """Begin *turn*, or end the one at work; earlier notices are forgotten."""
        with self._lock:
            self._turn, self._ends = turn, None

    def take(self, notice: Notice) -> bool:
        """Take a notice; return whether it is about the turn at work. Else it changes nothing."""
        with self._lock:
            if self._turn is None or not counts_for(notice, self._turn):
                return False
            if self._grace_s > 0:
                self._ends = self._clock() + self._grace_s
            return True

    def find_left_s(self) -> float | None:
        """Return how many seconds are left, 0 if it is over; None if no notice was taken."""
        with self._lock:
            return None if self._ends is None else max(0.0, self._ends - self._clock())
