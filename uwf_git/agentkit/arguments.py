"""The arguments that the engine appends to an agent's command, in both calling conventions.

They are parsed from the end, so an agent's own options cannot be mistaken for them.
Source: ``<command> <thread-id>``, or ``<command> -t <thread-id> -r <role>``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from uwf_git.errors import BadUsage

_NAMES = {"-t": "thread", "--thread": "thread", "-r": "role", "--role": "role"}


@dataclass(frozen=True, slots=True)
class AgentArguments:
    """The parsed argv of an agent."""

    thread_id: str

    role: str | None
    """None: the convention does not name it; the context does."""

    own: tuple[str, ...]
    """The agent's own words, before those of the engine."""


def parse_arguments(argv: Sequence[str]) -> AgentArguments:
    """Parse *argv*, without the program; raise BadUsage if there is no thread id."""
    words = list(argv)
    found: dict[str, str] = {}
    while len(words) > 1 and words[-2] in _NAMES and _NAMES[words[-2]] not in found:
        value, option = words.pop(), words.pop()
        found[_NAMES[option]] = value
    if not found and words:
        found["thread"] = words.pop()
    if not found.get("thread"):
        raise BadUsage(
            "no thread id was given",
            hint="the engine calls `<agent> <thread-id>`, or `<agent> -t <thread-id> -r <role>`",
        )
    return AgentArguments(found["thread"], found.get("role"), tuple(words))
