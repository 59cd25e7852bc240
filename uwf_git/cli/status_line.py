"""The status line: the one line of a terminal that is written anew while something goes on.

Owns: drawing and clearing it. Knows nothing of: what it says.
Always true: it is drawn only if it has changed, never wraps, and is gone before anything else is
written.
"""

import os

from uwf_git.cli.streams import write_stderr
from uwf_git.cli.text_width import shorten
from uwf_git.cli.visible import visible_line

# ECMA-48: to the beginning of the line, then erase all of it.
_CLEAR = "\r\x1b[2K"
_COLUMNS = 80
_STDERR = 2


class StatusLine:
    """A line at the bottom of the terminal that standard error is."""

    def __init__(self) -> None:
        self._shown = ""

    def show(self, text: str) -> None:
        """Show *text*, as far as it fits."""
        # Some terminals go to the next line when the last column is written.
        line = shorten(visible_line(text), _columns() - 1)
        if line != self._shown:
            write_stderr(_CLEAR + line)
            self._shown = line

    def clear(self) -> None:
        """Take it away; what is written next begins where it was."""
        if self._shown:
            write_stderr(_CLEAR)
            self._shown = ""


def _columns() -> int:
    try:
        # Some terminals say 0, meaning that they do not know.
        return os.get_terminal_size(_STDERR).columns or _COLUMNS
    except (OSError, ValueError):
        return _COLUMNS
