"""Lines of steps, of a drive or of events: they line up, and fit the terminal."""

from collections.abc import Callable, Iterable

from uwf_git.cli.output.screen import Screen, Style, Styled
from uwf_git.cli.output.text_width import display_width, shorten
from uwf_git.model.text import visible_line

_NUMBER, _TAIL = 2, 8
_SHORTEST_NAME, _LONGEST_NAME = 8, 20
_LEAST_WORDS = 10


class StepLines:
    """Lines of steps: mark, number, name, words, and how long it took."""

    def __init__(
        self, screen: Screen, columns: Callable[[], int | None], *, before: int = 0
    ) -> None:
        """Create them; *before* is how many columns stand before each."""
        self.screen = screen
        self.before = before
        self._columns = columns
        self._name_width = _SHORTEST_NAME

    def make_room(self, names: Iterable[str]) -> None:
        """Line up with *names* as well from now on."""
        widths = (min(display_width(self._shown(name)), _LONGEST_NAME) for name in names)
        self._name_width = max(self._name_width, *widths, 0)

    def mark(self, status: str) -> Styled:
        """Return the mark of a status."""
        return self.screen.mark(status)

    @property
    def again(self) -> Styled:
        """The mark of another try."""
        return Styled("↻" if self.screen.is_utf8 else "~", "yellow")

    def format(
        self, mark: Styled, name: str, said: str, *, number: int | None = None, tail: str = ""
    ) -> str:
        """Return a line: mark, number, name, words that are cut to fit, and *tail* at its end."""
        self.make_room([name])
        columns = self._columns()
        width = self._name_width if columns is None else min(self._name_width, columns // 5)
        name = shorten(self._shown(name), width, end=self.screen.ellipsis)
        padding = " " * (width - display_width(name))
        count = "" if number is None else str(number)
        head = f" {count:>{_NUMBER}} {name}{padding}  "
        end = f"{tail:>{_TAIL}}" if tail else ""
        said = self._shown(said)
        gap, end = ("  ", end.strip()) if end and columns is None else ("", end)
        if columns is not None:
            # Some terminals move to the next line when the last column is written.
            room = columns - 1 - self.before
            room -= len(mark.text) + display_width(head) + len(end)
            said = shorten(said, max(room, _LEAST_WORDS), end=self.screen.ellipsis)
            gap = " " * (room - display_width(said)) if end else ""
        return self.paint(mark.text, mark.style) + head + said + gap + self.paint(end, "dim")

    def paint(self, text: str, style: Style | None) -> str:
        """Return *text* in a colour."""
        return self.screen.paint(text, style)

    def _shown(self, said: str) -> str:
        text = visible_line(" ".join(said.split()))
        if self.screen.is_utf8:
            return text
        return text.encode("ascii", "backslashreplace").decode("ascii")
