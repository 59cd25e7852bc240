"""The status line: one line of a terminal that is rewritten while a command runs.

It is redrawn only if it changed, never wraps, and is cleared before other output.
"""

from collections.abc import Sequence

from uwf_git.cli.output.text_width import shorten
from uwf_git.cli.session.streams import stderr_columns, write_stderr
from uwf_git.model.visible import visible_line

# ECMA-48: to the beginning of the line, then erase all of it.
_CLEAR = "\r\x1b[2K"


class StatusLine:
    """A line at the bottom of the terminal that standard error is."""

    def __init__(self) -> None:
        self._shown = ""

    def show(self, text: str) -> None:
        """Show *text*, cut to the width."""
        # Some terminals move to the next line when the last column is written.
        line = shorten(visible_line(text), stderr_columns() - 1)
        if line != self._shown:
            write_stderr(_CLEAR + line)
            self._shown = line

    def show_all(self, texts: Sequence[str], *, gap: str) -> None:
        """Show *texts* beside each other, each cut to its share of the width."""
        width = max(1, (stderr_columns() - 1 - len(gap) * (len(texts) - 1)) // len(texts))
        self.show(gap.join(shorten(visible_line(text), width) for text in texts))

    def clear(self) -> None:
        """Clear the line; the next output begins at its start."""
        if self._shown:
            write_stderr(_CLEAR)
            self._shown = ""
