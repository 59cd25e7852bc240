"""Errors: what happened, to what, and what to type next.

Owns: the root error type, the exit statuses, and the bases that say whose move is next.
Knows nothing of: any concrete failure; those live beside the code that raises them.
Always true: a message is one line, lower case, and holds the id of the thing it speaks of.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

GIVEN_BACK = (
    "see `git fsck`; a remote that has it gives it back: `git fetch --refetch REMOTE`, or a new "
    "`uwf clone`"
)
"""What to try when something that git keeps is lost: a plain fetch asks for nothing that a ref
here says we have."""


def name_some(names: Sequence[str], *, most: int = 10) -> str:
    """Name the first *most* of *names*, and say how many more there are: a message is one line."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


class UwfError(Exception):
    """An expected failure, told to the user in one line and a hint.

    ``code`` is stable and kebab-case, for programs; ``exit_status`` is the process's answer;
    ``facts`` are the JSON values behind the sentence (``--format json`` prints them).
    """

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.facts = facts


class Refused(UwfError):
    """The caller's move: the state does not allow it, or there is no such thing."""

    code = "refused"
    exit_status = 1


class BadUsage(UwfError):
    """The caller's move: the words of the command are wrong."""

    code = "usage"
    exit_status = 2


class AgentFailed(UwfError):
    """The agent's move: it failed, or broke its role's schema."""

    code = "agent-failed"
    exit_status = 3


class Conflict(UwfError):
    """Nobody's move: somebody else was faster; trying again is safe."""

    code = "conflict"
    exit_status = 4


class StoreDamaged(UwfError):
    """The store holds something that cannot be what was written."""

    code = "store-damaged"
    exit_status = 5


class StoreFailed(UwfError):
    """The machine would not let the store read or write: full disk, permissions."""

    code = "store-failed"
    exit_status = 1
