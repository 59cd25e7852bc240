"""Moves: the transitions that this process itself has made.

Owns: remembering them until somebody tells of them. Knows nothing of: what they mean.
Always true: a commit is in it only if it was recorded here and a head was moved to it here; what
a fetch brings was made by somebody else, who has told of it.
"""

from uwf_git.store.refs import Oid


class Moves:
    """What one opened store has recorded, and what of it has become true."""

    __slots__ = ("_moved", "_recorded")

    def __init__(self) -> None:
        self._recorded: set[Oid] = set()
        self._moved: list[Oid] = []

    def note_recorded(self, commit: Oid) -> None:
        """Remember that *commit* was written here; no head is there yet."""
        self._recorded.add(commit)

    def note_moved(self, commit: Oid) -> None:
        """Remember that a head is at *commit* now."""
        if commit in self._recorded:
            self._recorded.discard(commit)
            self._moved.append(commit)

    def take(self) -> list[Oid]:
        """Give the transitions that were made, in order, each once."""
        moved, self._moved = self._moved, []
        return moved
