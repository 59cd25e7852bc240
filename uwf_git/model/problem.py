"""Problems: what is wrong with a document, and where; and the failure that a user is told."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple


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
