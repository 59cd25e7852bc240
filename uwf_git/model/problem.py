"""Problems: what is wrong with a document, and where.

Owns: the one shape in which every checker reports, so that all errors are told at once.
Knows nothing of: who checks what, or how problems are printed.
"""

from typing import NamedTuple


class Problem(NamedTuple):
    """One thing that is wrong, at one place."""

    path: str
    """Where, from the document's root: ``roles.planner.outputSchema``; "" is the root."""

    message: str
    """What, in one line."""

    line: int | None = None
    """The line in the source file, counted from 1, when there is a file."""

    file: str | None = None
    """The file that the line is in, when it is not the document itself."""

    def as_document(self) -> dict[str, str | int | None]:
        """Give it as JSON; the file only if there is one to tell."""
        fields: dict[str, str | int | None] = self._asdict()
        if self.file is None:
            del fields["file"]
        return fields
