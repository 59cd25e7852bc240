"""Live lines: the last lines of a terminal, which are rewritten while a command runs.

They are redrawn only if they or the terminal's size changed, leave its first line alone, and are
cleared before other output. The cursor is never hidden and no mode is changed: whatever ends the
process, the terminal is as it was.
"""

from collections.abc import Sequence

from uwf_git.cli.output.text_width import display_width
from uwf_git.cli.session.streams import TerminalSize, stderr_size, write_stderr
from uwf_git.model.text import without_colours

# ECMA-48: down some lines; erase this line; up one. Erasing to the end of the screen would move
# lines into the history of some terminals (tmux).
_DOWN, _ERASE, _UP = "\x1b[{}B", "\x1b[2K", "\x1b[1A"


class LiveLines:
    """Lines at the bottom of the terminal that standard error is."""

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._size = TerminalSize(0, 0)

    def show(self, lines: Sequence[str]) -> None:
        """Show *lines*, as many as fit; each is safe to print, and fits the width."""
        size = stderr_size()
        told = _cut(lines, max(size.lines - 1, 1))
        if not told:
            self.clear()
        elif (told, size) != (self._shown, self._size):
            # The cursor rests at the left: what is typed there (^C) does not wrap.
            write_stderr(self._erase(size) + "\n".join(told) + "\r")
            self._shown, self._size = told, size

    def clear(self) -> None:
        """Clear the lines; the next output begins where they began."""
        if self._shown:
            write_stderr(self._erase(stderr_size()))
            self._shown = []

    def _erase(self, size: TerminalSize) -> str:
        """Return what erases the shown lines: a terminal that became narrower has wrapped them."""
        widths = [display_width(without_colours(line)) for line in self._shown]
        rows = [max(1, -(-width // size.columns)) for width in widths] or [1]
        below = _DOWN.format(rows[-1] - 1) if rows[-1] > 1 else ""
        return "\r" + below + _ERASE + (_UP + _ERASE) * (sum(rows) - 1)


def _cut(lines: Sequence[str], most: int) -> list[str]:
    if len(lines) <= most:
        return list(lines)
    return [*lines[: most - 1], f"   and {len(lines) - most + 1} more"]
