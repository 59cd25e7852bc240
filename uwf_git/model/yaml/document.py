"""YAML documents: JSON values with the file and line of each part."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class YamlNode:
    """A value, the places of its parts, and how much an alias to it repeats."""

    value: Any
    line: int
    parts: dict[str | int, tuple[int, "YamlNode"]] = field(default_factory=dict)
    size: int = 1
    height: int = 0
    """Levels of collections: 0 for a scalar."""
    file: str | None = None
    """The included file of its parts; None for the document itself."""

    def add(self, key: str | int, part: "YamlNode", *, line: int) -> None:
        """Add *part* under *key*, which is on *line*."""
        self.parts[key] = line, part
        self.size += part.size
        self.height = max(self.height, part.height + 1)


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One parsed document. Aliases share their value: treat it as read-only."""

    value: Any
    """Plain JSON: dicts with string keys, lists, strings, finite numbers, booleans, None."""

    _root: YamlNode = field(repr=False, compare=False)

    def line(self, path: tuple[str | int, ...]) -> int | None:
        """Return the line (from 1) of the key or the list item at *path*, or None."""
        place = self.place(path)
        return None if place is None else place[1]

    def place(self, path: tuple[str | int, ...]) -> tuple[str | None, int] | None:
        """Return the included file (None: the document itself) and the line of *path*, or None."""
        file, line, node = self._root.file, self._root.line, self._root
        for part in path:
            if part not in node.parts:
                return None
            file, (line, node) = node.file, node.parts[part]
        return file, line
