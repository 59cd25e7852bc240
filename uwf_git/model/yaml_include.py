"""The files of one YAML document: their errors, and what they include."""

import json
import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from uwf_git.errors import Problem, Refused

# Errors of YAML documents, with the line and, for an included file, its path.


class BadYaml(Refused):
    """The bytes are not one YAML document of JSON values within the limits."""

    code = "bad-yaml"

    def __init__(
        self, problem: str, *, line: int | None = None, file: str | None = None, **facts: Any
    ) -> None:
        where = "" if line is None else f"line {line}: "
        if file is not None:
            where = f"{file}: " if line is None else f"{file}:{line}: "
            facts["file"] = file
        super().__init__(f"{where}{problem}", problem=problem, line=line, **facts)
        self.problem = problem
        self.line = line
        self.file = file
        """The included file with the problem; None for the document itself."""

        self.problems: tuple[Problem, ...] = (Problem("", problem, line, file),)
        """Its one problem; of ``BadIncludes`` all of them, in the order of reading."""


class BadIncludes(BadYaml):
    """The document is YAML, but files that it includes cannot be read."""

    code = "bad-include"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first = problems[0]
        told = [problem.as_document() for problem in problems]
        facts = {"problems": told} if len(told) > 1 else {}
        super().__init__(first.message, line=first.line, file=first.file, **facts)
        self.problems = problems


# YAML documents: JSON values with the file and line of each part.


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


# Include paths: which file an `!include` means.
#
# A resolved path is below the folder of the workflow file, and can be an entry of a git tree.
# Symbolic links are checked where the file is opened.

MAX_PATH = 500

RESERVED = ("workflow.yaml", "head.json", "nodes")
"""The entries of a version's own tree: FORMAT.md, "The tree of a workflow commit"."""


class CannotInclude(Refused):
    """A file cannot be included; ``problem`` says why, without the place."""

    code = "cannot-include"

    def __init__(self, problem: str) -> None:
        super().__init__(f"it cannot be included: {problem}", problem=problem)
        self.problem = problem


def resolve_include(text: str, *, inside: str) -> str:
    """Return the path that *text* means in *inside*, from the workflow file's folder."""
    if not text:
        raise CannotInclude("it names no file")
    if len(text) > MAX_PATH or not text.isprintable():
        raise CannotInclude("a path is one line of at most 500 printable characters")
    if text.startswith(("/", "~")) or text[1:2] == ":":
        raise CannotInclude("a path is relative to the file that contains it, never absolute")
    if "\\" in text:
        raise CannotInclude("use / between the names of a path")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(inside), text))
    if path == ".." or path.startswith("../"):
        raise CannotInclude("it is outside the folder of the workflow file")
    if path == "." or text.endswith("/"):
        raise CannotInclude("it is a folder, not a file")
    _check_entries(path)
    return path


def _check_entries(path: str) -> None:
    parts = path.split("/")
    if parts[0].casefold() in RESERVED:
        raise CannotInclude(f"{parts[0]} is a reserved name; rename it")
    # git refuses commits with .git in them, in any spelling that some file system takes for it.
    odd = [part for part in parts if part.casefold().startswith((".git", "git~"))]
    if odd:
        raise CannotInclude(f"git refuses files below the name {odd[0]}")
    if any(len(part.encode()) > 255 for part in parts) or len(path) > MAX_PATH:  # noqa: PLR2004 (the limit of every file system)
        raise CannotInclude("the path is too long")


# Includes: the other files of one YAML document.
#
# Each file is read once, so the bytes that are stored are those that were parsed. A cycle is an
# error.

ReadFile = Callable[[str], bytes]
"""Returns the file at a path below the workflow file's folder, or raises ``CannotInclude``."""

MAX_FILES = 100
MAX_FILE_BYTES = 1024 * 1024
MAX_ALL_BYTES = 8 * 1024 * 1024
MAX_NESTED = 10

_YAML = (".yaml", ".yml")
_JSON = ".json"
_NOT_TEXT = re.compile("[\0-\x08\x0b\x0e-\x1f\x7f]")
# An escaped backslash first, so that what follows it is not read as an escape.
_PAIR = re.compile(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|\\.", re.IGNORECASE)


class IncludedNotJson(CannotInclude):
    """A file that ends in .json is not JSON."""

    code = "included-not-json"

    def __init__(self, problem: str, *, line: int | None) -> None:
        super().__init__(problem)
        self.line = line


class Includes:
    def __init__(self, read: ReadFile, *, name: str = "") -> None:
        """*name* is the document's own file name: including that is a cycle."""
        self._read = read
        self.name = name
        self.files: dict[str, bytes] = {}
        """The content of each file by its path from the document's folder."""

    def resolve(self, text: str, chain: tuple[str, ...]) -> str:
        """Return the path that *text* means in the last file of *chain*, which led there."""
        path = resolve_include(text, inside=chain[-1])
        if path in chain:
            round_trip = " → ".join((*chain[chain.index(path) :], path))
            raise CannotInclude(f"it would include itself: {round_trip}")
        if len(chain) > MAX_NESTED:
            raise CannotInclude(f"files include files more than {MAX_NESTED} levels deep")
        return path

    def read(self, path: str) -> bytes:
        known = self.files.get(path)
        if known is not None:
            return known
        if len(self.files) >= MAX_FILES:
            raise CannotInclude(f"one workflow includes at most {MAX_FILES} files")
        content = self._read(path)
        if len(content) > MAX_FILE_BYTES:
            raise CannotInclude(f"it is larger than {_mib(MAX_FILE_BYTES)}")
        if sum(map(len, self.files.values())) + len(content) > MAX_ALL_BYTES:
            raise CannotInclude(f"all included files are larger than {_mib(MAX_ALL_BYTES)}")
        self.files[path] = content
        return content


def is_yaml(path: str) -> bool:
    return path.lower().endswith(_YAML)


def is_json(path: str) -> bool:
    return path.lower().endswith(_JSON)


def decode_text(content: bytes) -> str:
    """Decode a file that is neither YAML nor JSON; lines end in LF, as in a block of YAML."""
    try:
        text = content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise CannotInclude(f"it is not UTF-8 text (byte {error.start})") from None
    if strange := _NOT_TEXT.search(text):
        raise CannotInclude(f"it is not text: it has the character U+{ord(strange[0]):04X}")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def json_as_yaml(content: bytes) -> str:
    """Convert a JSON file to YAML with the same meaning on the same lines.

    YAML accepts JSON except for two things: tabs between the parts, and surrogate pairs.
    """
    try:
        text = content.decode().removeprefix("\ufeff")
        json.loads(text, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise IncludedNotJson("the file is not UTF-8 text", line=line) from None
    except json.JSONDecodeError as error:
        raise IncludedNotJson(f"not JSON: {error.msg.lower()}", line=error.lineno) from None
    except (RecursionError, ValueError) as error:
        # Python refuses to read integers of more than 4,300 digits.
        is_deep = isinstance(error, RecursionError)
        problem = "it is nested too deeply" if is_deep else "a number has too many digits"
        raise IncludedNotJson(f"not JSON that can be read: {problem}", line=None) from None
    # A tab within a string of JSON is an escape.
    return _PAIR.sub(_join_pair, text.replace("\t", " "))


def _refuse_constant(name: str) -> None:
    raise IncludedNotJson(f"not JSON: {name} is a number that JSON does not have", line=None)


def _join_pair(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[0]
    high, low = int(match[1], 16) - 0xD800, int(match[2], 16) - 0xDC00
    return f"\\U{0x10000 + (high << 10) + low:08x}"


def _mib(size_bytes: int) -> str:
    return f"{size_bytes // (1024 * 1024)} MiB"
