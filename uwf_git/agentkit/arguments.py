"""Arguments: what the engine appends to an agent's command.

Owns: both calling conventions, seen from the agent. Knows nothing of: the agent's own words.
Always true: what the engine appends stands at the end, so an agent's own options cannot be
mistaken for it.
Source: ``<command> <thread-id>``, or ``<command> -t <thread-id> -r <role>``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from uwf_git.errors import BadUsage

_NAMES = {"-t": "thread", "--thread": "thread", "-r": "role", "--role": "role"}


@dataclass(frozen=True, slots=True)
class AgentArguments:
    """The argv of an agent, taken apart."""

    thread_id: str

    role: str | None
    """None when the convention does not name it: the context does."""

    own: tuple[str, ...]
    """The words before: the agent's own."""


def parse_arguments(argv: Sequence[str]) -> AgentArguments:
    """Take apart *argv*, which is given without the program.

    Raises:
        BadUsage: there is no thread id in it.
    """
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
