"""Transitions: the moderator's table, role by role.

Owns: the graph's shape and the two names that are not roles.
Knows nothing of: how a condition is written or answered, and where the table is stored.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

START = "$START"
"""Where a thread stands before its first step."""

END = "$END"
"""Where a thread goes when no role is next."""


class Transition(NamedTuple):
    """One way out of a position."""

    to: str
    """The next role, or ``END``."""

    condition: str | None
    """JSONata text; None holds always."""


Graph: TypeAlias = Mapping[str, tuple[Transition, ...]]
"""From a role (or ``START``) to the ways out of it, in the order in which they are asked."""
