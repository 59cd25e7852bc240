"""What a turn is given besides its prompt: files, and the try that it belongs to."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file that the turn is given."""

    path: str
    """Below the work directory."""

    content: str
    problem: str | None = None
    """Why there is no content; None: there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """The verdict that ended the last try."""

    role: str
    """Who rejected the work."""

    issues: tuple[str, ...]
    suggestion: str
    meta: Any
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TryView:
    """The try that a turn belongs to, at a node whose work another agent verifies."""

    number: int
    """Which try it is, from 1."""

    of: int | None = None
    """How many there are; None: that is not known."""

    verifies: str | None = None
    """Of a verdict: the role whose work, the newest step, is to be judged."""

    work_input: Any = None
    """Of a verdict: what that work was about."""

    checked: str = ""
    """Of a verdict: what the checks of that work printed, which it passed."""

    rejected: Rejection | None = None
    """Of work: the verdict that rejected the last try; None if there was none."""
