"""Problems: what is wrong with a document, and where; the one shape for all checkers."""

from typing import NamedTuple


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
