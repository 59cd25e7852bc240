"""The agent that `uwf mcp` works for."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    # The store takes 60 ms to import, which must not delay the first reply.
    from uwf_git.store.store import Store


class McpPlace(NamedTuple):
    """The thread, role and step of the agent."""

    open_store: "Callable[[], Store]"
    thread: str | None = None
    role: str | None = None
    """None: the role whose turn it is."""

    head: str | None = None
    """The head when the agent was started; None: any."""

    step_dir: str | None = None
    """The directory for a submitted result; None: none can be submitted."""
