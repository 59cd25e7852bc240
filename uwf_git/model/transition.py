"""The workflow graph: its transitions, and the two names that are not roles."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

START = "$START"
"""The position before the first step."""

END = "$END"
"""The position after the last step."""


class Transition(NamedTuple):
    """One arrow of the graph, from a position to the next role."""

    to: str
    """The next role, or ``END``."""

    condition: str | None
    """JSONata text; None is always true."""


Graph: TypeAlias = Mapping[str, tuple[Transition, ...]]
"""The transitions of each role and of ``START``, in the order in which they are tried."""
