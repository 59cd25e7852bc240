"""Arguments: what a model wrote behind the name of a tool.

Owns: reading them as what the tool needs. Knows nothing of: any one tool.
Always true: what is missing or of the wrong kind is told in words that the model can act upon.
"""

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
        """Give the text *name*.

        Raises:
            ToolFailed: it is missing, without a *default*, or no text.
        """
        value = self._values.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise ToolFailed(f"{self._tool} needs a text in {name!r}")
        return value

    def whole(self, name: str, default: int, *, most: int) -> int:
        """Give the number *name*, at most *most*; models write numbers as texts at times.

        Raises:
            ToolFailed: it is no whole number from 0 on.
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
