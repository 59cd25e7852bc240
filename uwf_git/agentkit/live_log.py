"""The live log: what a program prints on stderr, repeated on ours while it does.

Owns: how much of it. Always true: a flood is cut with a note, since all of it would count against
the agent's own limit.
"""

import sys

_LOGGED_BYTES = 1024 * 1024


class LiveLog:
    """Repeats the beginning of an output on stderr."""

    def __init__(self, limit: int = _LOGGED_BYTES) -> None:
        self._left = limit

    def add(self, chunk: bytes) -> None:
        """Repeat *chunk*, as far as there is room."""
        if self._left <= 0:
            return
        shown = chunk[: self._left]
        self._left -= len(shown)
        sys.stderr.buffer.write(shown)
        if self._left <= 0:
            sys.stderr.buffer.write(b"\n[the log ends here; the output goes on]\n")
        sys.stderr.buffer.flush()
