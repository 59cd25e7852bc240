"""The arguments of a tool call, as the model wrote them; an error is a text for the model."""

from collections.abc import Mapping
from typing import Any

from uwf_git.agentkit.react.work_folder import ToolFailed

_MOST_DIGITS = 9


class ToolArguments:
    """The arguments of one call."""

    def __init__(self, tool: str, values: Mapping[str, Any]) -> None:
        self._tool = tool
        self._values = values

    def text(self, name: str, default: str | None = None) -> str:
        """Return the text *name*; raise ToolFailed if it is missing without a *default*."""
        value = self._values.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise ToolFailed(f"{self._tool} needs a text in {name!r}")
        return value

    def whole(self, name: str, default: int, *, most: int) -> int:
        """Return the whole number *name* from 0, at most *most*; also if it is written as a text.

        Raises:
            ToolFailed: it is something else.
        """
        value = self._values.get(name)
        if value is None:
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, str) and value.isascii() and value.isdecimal():
            value = int(value[:_MOST_DIGITS])
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ToolFailed(f"{self._tool} needs a whole number in {name!r}")
        return min(value, most)
