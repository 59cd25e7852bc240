"""Lines of progress on a terminal: they line up, and none is longer than the terminal is wide."""

from collections.abc import Iterable

from uwf_git.cli.output.screen import Screen, Style, Styled
from uwf_git.cli.output.text_width import display_width, shorten
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import stderr_columns, stderr_is_utf8, wants_stderr_colour
from uwf_git.model.visible import visible_line

_NUMBER, _TAIL = 2, 8
_SHORTEST_NAME, _LONGEST_NAME = 8, 20
_LEAST_WORDS = 10


class StepLines:
    """The lines of one drive."""

    def __init__(self, session: Session, *, before: int = 0) -> None:
        """Create them; *before* is how many columns stand before each."""
        self._before = before
        self._screen = Screen(
            has_colour=wants_stderr_colour(session.environ), is_utf8=stderr_is_utf8()
        )
        self._name_width = _SHORTEST_NAME

    def make_room(self, names: Iterable[str]) -> None:
        """Line up with *names* as well from now on."""
        widths = (min(display_width(visible_line(name)), _LONGEST_NAME) for name in names)
        self._name_width = max(self._name_width, *widths, 0)

    def mark(self, status: str) -> Styled:
        """Return the mark of a status."""
        return self._screen.mark(status)

    @property
    def again(self) -> Styled:
        """The mark of another try."""
        return Styled("↻" if self._screen.is_utf8 else "~", "yellow")

    def format(
        self, mark: Styled, name: str, said: str, *, number: int | None = None, tail: str = ""
    ) -> str:
        """Return a line: mark, number, name, words that are cut to fit, and *tail* at its end."""
        self.make_room([name])
        name = shorten(visible_line(name), self._name_width, end=self._screen.ellipsis)
        padding = " " * (self._name_width - display_width(name))
        count = "" if number is None else str(number)
        head = f" {count:>{_NUMBER}} {name}{padding}  "
        end = f"{tail:>{_TAIL}}" if tail else ""
        # Some terminals move to the next line when the last column is written.
        room = stderr_columns() - 1 - self._before
        room -= len(mark.text) + display_width(head) + len(end)
        said = shorten(self._shown(said), max(room, _LEAST_WORDS), end=self._screen.ellipsis)
        gap = " " * (room - display_width(said)) if end else ""
        return self.paint(mark.text, mark.style) + head + said + gap + self.paint(end, "dim")

    def paint(self, text: str, style: Style | None) -> str:
        """Return *text* in a colour."""
        return self._screen.paint(text, style)

    def _shown(self, said: str) -> str:
        text = visible_line(" ".join(said.split()))
        if self._screen.is_utf8:
            return text
        return text.encode("ascii", "backslashreplace").decode("ascii")
