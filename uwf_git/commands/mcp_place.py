"""MCP place: which agent `uwf mcp` works for.

Owns: the values between the command line and the tools. Knows nothing of: either.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    # The store costs 60 ms, which the server's first reply must not pay.
    from uwf_git.store.store import Store


class McpPlace(NamedTuple):
    """Where the agent is."""

    open_store: "Callable[[], Store]"
    thread: str | None = None
    role: str | None = None
    """None: whoever's turn it is."""

    head: str | None = None
    """Where the thread was when the agent was asked; None does not matter."""

    step_dir: str | None = None
    """Where a result is handed in; None: it cannot be."""
