"""Base classes of errors, with exit statuses: what happened has a code, and rarely a class.

An error that somebody catches by name has a class, defined where it is raised; any other is raised
as ``Refused("...", code="no-such-step", hint="...")``.

A message is one line, lower case, and names the id of its subject; the hint says what to type next.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

GIVEN_BACK = (
    "see `git fsck`; a remote that has it gives it back: `git fetch --refetch --no-filter REMOTE`, "
    "for a shallow clone also with --unshallow; if that fails: `uwf fetch REMOTE`, or `uwf clone`"
)
"""The hint for a lost git object. A plain fetch does not restore it: git does not ask for objects
that a local ref reaches."""


def name_some(names: Sequence[str], *, most: int = 10) -> str:
    """Return the first *most* of *names* in one line, and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


class UwfError(Exception):
    """An expected failure, shown to the user as one line and a hint.

    ``code`` is stable and kebab-case, for programs; ``exit_status`` is the process's answer;
    ``facts`` are the JSON values behind the sentence (``--format json`` prints them); ``lines``
    tell people the same as the message, where that would be one long line.
    """

    code: str = "error"
    exit_status: ClassVar[int] = 1
    lines: Sequence[str] = ()

    def __init__(
        self, message: str, *, code: str | None = None, hint: str | None = None, **facts: Any
    ) -> None:
        super().__init__(message)
        self.code = code or self.code
        self.message = message
        self.hint = hint
        self.facts = facts

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy without ``__init__``, which takes other arguments in some subclasses."""
        return type(self).__new__, (type(self), *self.args), vars(self)


class Refused(UwfError):
    """The state does not allow the command, or its object does not exist."""

    code = "refused"
    exit_status = 1


class BadUsage(UwfError):
    """The arguments of the command are wrong."""

    code = "usage"
    exit_status = 2


class AgentFailed(UwfError):
    """The agent failed, or its result does not fit its role's schema."""

    code = "agent-failed"
    exit_status = 3


class Conflict(UwfError):
    """Another process changed the state first; trying again is safe."""

    code = "conflict"
    exit_status = 4


class StoreDamaged(UwfError):
    """The store holds data that uwf cannot have written so."""

    code = "store-damaged"
    exit_status = 5


class StoreFailed(UwfError):
    """The system refused to read or write the store: full disk, permissions."""

    code = "store-failed"
    exit_status = 1


# Problems: what is wrong with a document, and where; and the failure that a user is told.


class Problem(NamedTuple):
    path: str
    """The path from the document's root: ``roles.planner.outputSchema``; "" is the root."""

    message: str

    line: int | None = None
    """The line in the source file, from 1, if there is a file."""

    file: str | None = None
    """The file of that line, if it is not the document itself."""

    def as_document(self) -> dict[str, str | int | None]:
        """Return it as JSON; with the file only if there is one."""
        fields: dict[str, str | int | None] = self._asdict()
        if self.file is None:
            del fields["file"]
        return fields


_NO_FACTS: Mapping[str, Any] = MappingProxyType({})


class Failure(NamedTuple):
    """The message that the user gets."""

    code: str
    message: str
    exit_status: int
    hint: str | None = None
    facts: Mapping[str, Any] = _NO_FACTS
    lines: Sequence[str] = ()
    """What people read in place of the message, if any."""
