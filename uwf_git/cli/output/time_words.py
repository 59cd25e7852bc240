"""Times as people type them: `7d`, `2026-11-01`, `2026-11-01T12:00+02:00`.

Without a zone a time is UTC, as in all output. A relative time counts from when the verb runs, not
from when click parses it.
"""

import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

import click

from uwf_git.model.text import UNITS_S

_AGO = re.compile(r"([0-9]{1,9})([smhdw])")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:$|[T ])")
_MS = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Moment(NamedTuple):
    """A time that was typed."""

    text: str
    ago_ms: int | None = None
    """How long before now; None for an absolute time."""

    time_ms: int = 0
    """Milliseconds since 1970, for an absolute time."""

    def at(self, now_ms: int) -> int:
        """Return milliseconds since 1970 (not before) if it is *now_ms*."""
        return max(self.time_ms if self.ago_ms is None else now_ms - self.ago_ms, 0)


class MomentWords(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """The type of an option that takes a time; its value is a `Moment`."""

    name = "when"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Moment:
        """Parse the text."""
        if isinstance(value, Moment):
            return value
        moment = _parse(str(value).strip())
        if moment is None:
            self.fail(
                f"{str(value)[:40]!r} is no time: type how long ago (30m, 12h, 7d, 2w), a date "
                "(2026-11-01) or a time (2026-11-01T12:00, in UTC unless it says otherwise)",
                param,
                ctx,
            )
        return moment


MOMENT = MomentWords()


def _parse(text: str) -> Moment | None:
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return Moment(text, ago_ms=int(ago[1]) * UNITS_S[ago[2]] * _MS)
    # Python takes other spellings as well, such as 20261101, which are ambiguous.
    if _DATE.match(text) is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    zoned = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return Moment(text, time_ms=int((zoned - _EPOCH).total_seconds() * _MS))
