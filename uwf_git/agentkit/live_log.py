"""The live log: a program's stderr, copied to ours while it runs.

A flood is cut with a note, since all of it would count against the agent's own limit of output.
"""

import os
import sys

_LOGGED_BYTES = 1024 * 1024


class LiveLog:
    """Copies the beginning of an output to stderr."""

    def __init__(self, limit: int = _LOGGED_BYTES) -> None:
        self._left = limit

    def add(self, chunk: bytes) -> None:
        """Copy *chunk*, up to the limit."""
        if self._left <= 0:
            return
        shown = chunk[: self._left]
        self._left -= len(shown)
        if self._left <= 0:
            shown += b"\n[the log ends here; the output goes on]\n"
        sys.stderr.flush()
        try:
            os.write(sys.stderr.fileno(), shown)
        except OSError:
            # A full disk must not end the program, whose answer is paid for.
            self._left = 0
