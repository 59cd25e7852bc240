"""How text is shown to people: marks of statuses, colours of the 16-colour palette, times.

No colour says what no mark or word says.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from uwf_git.cli.output.times import tell_moment, tell_when
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import stdout_is_utf8, wants_colour
from uwf_git.model.text import render_time

Style = Literal["bold", "dim", "red", "green", "yellow", "blue", "magenta", "cyan"]

# ECMA-48, "select graphic rendition"; a terminal's user chooses what the colours look like.
_CODES: Mapping[Style, int] = {
    "bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35,
    "cyan": 36,
}  # fmt: skip

_MARKS: Mapping[str, tuple[str, str, Style | None]] = {
    "running": ("●", "*", "cyan"),
    "ready": ("○", "o", None),
    "waiting": ("?", "?", "yellow"),
    "paused": ("‖", "=", "blue"),
    "failed": ("✗", "!", "red"),
    "completed": ("✓", "+", "green"),
    "killed": ("×", "x", "magenta"),  # noqa: RUF001 (it is no letter)
    "split": ("⇉", ">", "cyan"),
    "damaged": ("!", "#", "red"),
    "unreadable": ("!", "#", "red"),
}
_UNKNOWN: tuple[str, str, Style | None] = ("·", ".", None)


class Painted(str):
    """Text that is safe to print as it is: foreign text in it was made visible, then coloured."""

    __slots__ = ()


class Styled(NamedTuple):
    """A piece of text, and its colour."""

    text: str
    style: Style | None


class Screen(NamedTuple):
    """Where text is shown."""

    width: int | None = None
    """In columns; None: no terminal, nothing is cut."""

    has_colour: bool = False
    is_utf8: bool = True
    now_ms: int | None = None
    """Times are told by how long ago they were; None: as dates in UTC."""

    @property
    def ellipsis(self) -> str:
        """What stands at a cut."""
        return "…" if self.is_utf8 else "~"

    def paint(self, text: str, style: Style | None) -> str:
        """Return *text*, which is visible already, in a colour."""
        if style is None or not self.has_colour or not text:
            return text
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m"

    def mark(self, status: str) -> Styled:
        """Return the mark of a status."""
        sign, ascii_sign, style = _MARKS.get(status, _UNKNOWN)
        return Styled(sign if self.is_utf8 else ascii_sign, style)

    def name_status(self, status: str, more: str = "") -> Styled:
        """Return the mark of a status and its word, and *more* words."""
        mark = self.mark(status)
        return Styled(f"{mark.text} {status}{more}", mark.style)

    def tell_when(self, time_ms: int | None) -> str | None:
        """Return when something was."""
        if time_ms is None:
            return None
        return render_time(time_ms) if self.now_ms is None else tell_when(time_ms, self.now_ms)

    def tell_moment(self, time_ms: int) -> str:
        """Return when something was, to the second."""
        return render_time(time_ms) if self.now_ms is None else tell_moment(time_ms, self.now_ms)


def screen_of(session: Session) -> Screen:
    """Return the screen that standard output is."""
    is_screen = session.is_screen
    return Screen(
        session.text_width(),
        session.output_format == "text"
        and wants_colour(session.environ, is_terminal=session.stdout_is_tty),
        stdout_is_utf8(),
        session.now_ms() if is_screen and not session.is_utc else None,
    )
