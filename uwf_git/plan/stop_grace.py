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
    anew, and its end is told once, so that a program which goes on is left alone.
    """

    def __init__(
        self, grace_s: float = GRACE_S, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Count *grace_s* seconds of *clock*."""
        self._grace_s, self._clock = grace_s, clock
        self._lock = threading.Lock()
        self._turn: TurnAtWork | None = None
        self._ends: float | None = None

    def begin(self, turn: TurnAtWork | None, *, has_stopped: bool = False) -> None:
        """Begin *turn*, or end the one at work; earlier notices are forgotten.

        Of a turn that is taken up again, *has_stopped* says that a notice has come before.
        """
        with self._lock:
            self._turn, self._ends = turn, None
            if has_stopped:
                self._renew()

    def take(self, notice: Notice) -> bool:
        """Take a notice; return whether it is about the turn at work. Else it changes nothing."""
        with self._lock:
            if self._turn is None or not counts_for(notice, self._turn):
                return False
            self._renew()
            return True

    def is_over(self) -> bool:
        """Return whether the grace of the newest notice has run out; True once for each."""
        with self._lock:
            if self._ends is None or self._clock() < self._ends:
                return False
            self._ends = None
            return True

    def _renew(self) -> None:
        if self._grace_s > 0:
            self._ends = self._clock() + self._grace_s
