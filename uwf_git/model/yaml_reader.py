"""Read YAML 1.2 from untrusted bytes into JSON values with their lines; the only use of PyYAML.

The values are plain JSON, duplicate keys are refused, and every cost is limited. PyYAML's own
constructor is not used: it follows YAML 1.1, keeps the last of two equal keys, lets aliases
multiply, and recurses without limit. Its events are fine. libyaml is used if PyYAML was built with
it; both readers give the same values.
"""

import json
import math
import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from uwf_git.errors import Problem, Refused
from uwf_git.model.yaml_render import resolve_plain

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

MAX_FILES = 100
_MIB = 1024 * 1024
MAX_FILE_BYTES = _MIB
MAX_ALL_BYTES = 8 * _MIB
MAX_NESTED = 10

# An escaped backslash first, so that what follows it is not read as an escape.
_PAIR = r"(?i)\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|\\."


class IncludedNotJson(CannotInclude):
    """A file that ends in .json is not JSON."""

    code = "included-not-json"

    def __init__(self, problem: str, *, line: int | None) -> None:
        super().__init__(problem)
        self.line = line


class Includes:
    def __init__(self, read: Callable[[str], bytes], *, name: str = "") -> None:
        """*name* is the document's own file name: including that is a cycle.

        *read* returns the file at a path below its folder, or raises ``CannotInclude``.
        """
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
            raise CannotInclude(f"it is larger than {MAX_FILE_BYTES // _MIB} MiB")
        if sum(map(len, self.files.values())) + len(content) > MAX_ALL_BYTES:
            raise CannotInclude(f"all included files are larger than {MAX_ALL_BYTES // _MIB} MiB")
        self.files[path] = content
        return content


def decode_text(content: bytes) -> str:
    """Decode a file that is neither YAML nor JSON; lines end in LF, as in a block of YAML."""
    try:
        text = content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise CannotInclude(f"it is not UTF-8 text (byte {error.start})") from None
    if strange := re.search("[\0-\x08\x0b\x0e-\x1f\x7f]", text):
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
    return re.sub(_PAIR, _join_pair, text.replace("\t", " "))


def _refuse_constant(name: str) -> None:
    raise IncludedNotJson(f"not JSON: {name} is a number that JSON does not have", line=None)


def _join_pair(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[0]
    high, low = int(match[1], 16) - 0xD800, int(match[2], 16) - 0xDC00
    return f"\\U{0x10000 + (high << 10) + low:08x}"


# The reader: YAML 1.2 from untrusted bytes as JSON values.

MAX_SOURCE_BYTES = _MIB
MAX_DEPTH = 100
_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
MAX_NODES = 200_000

_INCLUDE = "!include"
_SHOWN = 60
# Repeated text (aliases, includes) counts by its size: a megabyte 10,000 times is one value each
# time, and ten gigabytes of nodes.
_CHARACTERS_OF_ONE_VALUE = 64
_MOST_PROBLEMS = 200
_TAG = "tag:yaml.org,2002:"
_LINE_BREAK = re.compile(r"\r\n|\r|\n")

# Control characters and lone surrogates are no text. U+0085, U+2028 and U+2029 are line breaks to
# YAML 1.1, which PyYAML follows, and ordinary characters to YAML 1.2.
_NOT_TEXT = "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"


@dataclass(slots=True)
class _Reading:
    """What one document and the files that it includes share while they are read."""

    includes: Includes | None
    parsed: dict[str, YamlNode] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def note(self, problem: str, *, line: int | None, file: str | None) -> None:
        """Note what cannot be included; reading continues, so that all problems are reported."""
        self.problems.append(Problem("", problem, line, file))
        if len(self.problems) == _MOST_PROBLEMS:
            self.raise_if_any()

    def raise_if_any(self) -> None:
        if self.problems:
            raise BadIncludes(tuple(self.problems))


def parse_yaml(source: bytes | str, *, includes: Includes | None = None) -> YamlDocument:
    """Read a YAML 1.2 document of JSON values; BadYaml names the first problem, with its line.

    With *includes*, `!include PATH` stands for another file: the value of a YAML or JSON file, the
    text of any other. The files are in ``includes.files`` afterwards.
    """
    reading = _Reading(includes)
    chain = ("" if includes is None else includes.name,)
    root = _parse(_decode(source), reading, chain)
    reading.raise_if_any()
    return YamlDocument(root.value, root)


def _parse(source: str, reading: _Reading, chain: tuple[str, ...]) -> YamlNode:
    text = _check_text(source)
    import yaml  # noqa: PLC0415 (12 ms, and most commands read no YAML)

    try:
        return _Builder(yaml, text, reading, chain).build_document()
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text) from error
    except (ValueError, OverflowError) as error:
        # PyYAML without libyaml passes on errors of chr() and int().
        raise BadYaml("an escape or a version in the file is too large") from error


def _decode(source: bytes | str) -> str:
    size = len(source)
    if isinstance(source, str) and size <= MAX_SOURCE_BYTES:
        size = len(source.encode("utf-8", "surrogatepass"))
    if size > MAX_SOURCE_BYTES:
        raise BadYaml(f"the file is larger than {MAX_SOURCE_BYTES // _MIB} MiB")
    if isinstance(source, str):
        return source
    if source.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BadYaml("the file is UTF-16; save it as UTF-8")
    try:
        return source.decode("utf-8")
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        byte = source[error.start]
        raise BadYaml(f"the file is not UTF-8 text (byte 0x{byte:02x})", line=line) from None


def _check_text(text: str) -> str:
    text = text.removeprefix("\ufeff")
    strange = re.search(_NOT_TEXT, text)
    if strange:
        code = ord(strange[0])
        raise BadYaml(
            f"the character U+{code:04X} is not allowed in a file; "
            f'write "\\u{code:04x}" in double quotes if it is meant',
            line=_line_at(text, strange.start()),
        )
    return text


def _syntax_error(error: Any, text: str) -> BadYaml:
    mark = error.problem_mark or error.context_mark
    problem = " ".join((error.problem or "not YAML").split())[: 2 * _SHOWN]
    if "maximum nesting depth" in problem:
        # PyYAML 6.0.4 on counts levels itself.
        return BadYaml(_TOO_DEEP, line=None if mark is None else mark.line + 1)
    if error.context:
        problem += f" ({' '.join(error.context.split())})"
    if "cannot start any token" in problem:
        problem += "; indent with blanks, not tabs, and quote text that starts with @, ` or %"
    elif "expected ','" in problem or "mapping values" in problem:
        problem += "; quote text that has `: `, or in brackets any of , [ ] { }"
    # What is missing at the end is missing after the last line that is not blank.
    last = _line_at(text, len(text.rstrip()))
    return BadYaml(problem, line=None if mark is None else min(mark.line + 1, last))


def _line_at(text: str, position: int) -> int:
    return len(_LINE_BREAK.findall(text, 0, position)) + 1


def _line(event: Any) -> int:
    line: int = event.start_mark.line + 1
    return line


class _Builder:
    """Turns events into nodes; one recursion per level, of which there are at most MAX_DEPTH."""

    def __init__(self, yaml: Any, text: str, reading: _Reading, chain: tuple[str, ...]) -> None:
        self._yaml = yaml
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events: Iterator[Any] = yaml.parse(text, Loader=loader)
        self._reading = reading
        self._chain = chain
        # The caller names the document itself.
        self._file = chain[-1] if len(chain) > 1 else None
        self._anchors: dict[str, YamlNode | None] = {}
        self._nodes = 0

    def build_document(self) -> YamlNode:
        next(self._events)
        if isinstance(next(self._events), self._yaml.StreamEndEvent):
            raise BadYaml("the file is empty")
        first = next(self._events)
        root = self._build(first, depth=0)
        if self._is_nothing(first):
            raise BadYaml("the file is empty")
        next(self._events)
        after = next(self._events)
        if not isinstance(after, self._yaml.StreamEndEvent):
            raise BadYaml("a second document starts here; one file holds one", line=_line(after))
        return root

    def _build(self, event: Any, *, depth: int) -> YamlNode:
        if isinstance(event, self._yaml.AliasEvent):
            return self._resolve_alias(event, depth=depth)
        self._count(1, event)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, self._yaml.ScalarEvent):
            node = self._build_scalar(event, depth=depth)
        else:
            self._check_depth(depth + 1, event)
            if isinstance(event, self._yaml.MappingStartEvent):
                node = self._build_mapping(event, depth=depth + 1)
            else:
                node = self._build_sequence(event, depth=depth + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _build_scalar(self, event: Any, *, depth: int) -> YamlNode:
        if event.tag == _INCLUDE and self._reading.includes is not None:
            node = self._include(event, self._reading.includes)
            self._check_depth(depth + node.height, event)
        else:
            value = _scalar(event)
            node = YamlNode(value, _line(event), size=_weight(value))
        self._count(node.size - 1, event)
        return node

    def _include(self, event: Any, includes: Includes) -> YamlNode:
        """Return the value of another file; if it cannot be included, note that and return None."""
        line, file = _line(event), self._file
        try:
            path = includes.resolve(event.value, self._chain)
            if path not in self._reading.parsed:
                # An empty value first: a problem of this file is reported once.
                self._reading.parsed[path] = YamlNode(None, line)
                self._reading.parsed[path] = self._read_file(path, includes.read(path))
            return self._reading.parsed[path]
        except IncludedNotJson as error:
            self._reading.note(error.problem, line=error.line, file=path)
        except CannotInclude as error:
            shown = f"{_INCLUDE} {repr(event.value[:_SHOWN])[1:-1]}".rstrip()
            self._reading.note(f"{shown}: {error.problem}", line=line, file=file)
        except BadYaml as error:
            if isinstance(error, BadIncludes):
                raise
            self._reading.note(error.problem, line=error.line, file=error.file or path)
        return YamlNode(None, line)

    def _read_file(self, path: str, content: bytes) -> YamlNode:
        name = path.lower()
        if name.endswith((".yaml", ".yml", ".json")):
            source = json_as_yaml(content) if name.endswith(".json") else _decode(content)
            return _parse(source, self._reading, (*self._chain, path))
        text = decode_text(content)
        return YamlNode(text, 1, size=_weight(text), file=path)

    def _build_mapping(self, start: Any, *, depth: int) -> YamlNode:
        _check_tag(start, "map")
        fields: dict[str, Any] = {}
        node = YamlNode(fields, _line(start), height=1, file=self._file)
        while not isinstance(event := next(self._events), self._yaml.MappingEndEvent):
            line = _line(event)
            if getattr(event, "tag", None) == _INCLUDE:
                raise BadYaml("a key cannot be included; only a value can", line=line)
            key = self._build(event, depth=depth).value
            if not isinstance(key, str):
                raise BadYaml(self._bad_key(event), line=line)
            if key in fields:
                before = node.parts[key][0]
                raise BadYaml(
                    f"the key {key[:_SHOWN]!r} is duplicated, first on line {before}", line=line
                )
            item = self._build(next(self._events), depth=depth)
            fields[key] = item.value
            node.add(key, item, line=line)
        return node

    def _build_sequence(self, start: Any, *, depth: int) -> YamlNode:
        _check_tag(start, "seq")
        items: list[Any] = []
        node = YamlNode(items, _line(start), height=1, file=self._file)
        while not isinstance(event := next(self._events), self._yaml.SequenceEndEvent):
            item = self._build(event, depth=depth)
            node.add(len(items), item, line=_line(event))
            items.append(item.value)
        return node

    def _resolve_alias(self, event: Any, *, depth: int) -> YamlNode:
        node = self._anchors.get(event.anchor)
        if node is None:
            is_open = event.anchor in self._anchors
            problem = "contains itself" if is_open else "has no anchor before it"
            raise BadYaml(f"the alias *{event.anchor[:_SHOWN]} {problem}", line=_line(event))
        self._count(node.size, event)
        self._check_depth(depth + node.height, event)
        return node

    def _count(self, nodes: int, event: Any) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise BadYaml(
                f"more than {MAX_NODES:,} values, aliases and includes counted",
                line=_line(event),
            )

    def _check_depth(self, depth: int, event: Any) -> None:
        if depth > MAX_DEPTH:
            raise BadYaml(_TOO_DEEP, line=_line(event))

    def _is_nothing(self, event: Any) -> bool:
        return (
            isinstance(event, self._yaml.ScalarEvent)
            and event.value == ""
            and event.implicit[0]
            and event.tag is None
            and event.anchor is None
        )

    def _bad_key(self, event: Any) -> str:
        if isinstance(event, self._yaml.ScalarEvent) and event.value:
            return f'the key {event.value} is not text; write "{event.value}"'
        return "a key must be text"


def _weight(value: Any) -> int:
    return 1 + len(value) // _CHARACTERS_OF_ONE_VALUE if isinstance(value, str) else 1


def _check_tag(event: Any, kind: str) -> None:
    if event.tag == _INCLUDE:
        raise BadYaml(f"{_INCLUDE} takes the path of one file", line=_line(event))
    if event.tag not in {None, "!", _TAG + kind}:
        raise BadYaml(f"the tag {_short_tag(event.tag)} is not supported", line=_line(event))


def _short_tag(tag: str) -> str:
    short = f"!!{tag.removeprefix(_TAG)}" if tag.startswith(_TAG) else tag
    # A tag may hold any character as %1b; repr keeps it from the terminal.
    return repr(short[:_SHOWN])[1:-1]


def _scalar(event: Any) -> Any:
    is_plain = event.tag is None and event.implicit[0]
    untagged = resolve_plain(event.value) if is_plain else event.value
    value = untagged if event.tag is None else _tagged(event)
    if isinstance(value, float) and not math.isfinite(value):
        raise BadYaml(
            f"{event.value[:_SHOWN]} is a number that JSON does not have; quote it if it is text",
            line=_line(event),
        )
    # The reader without libyaml lets "\ud800" through.
    if isinstance(value, str) and not value.isascii() and re.search("[\ud800-\udfff]", value):
        raise BadYaml("half of a surrogate pair is not text", line=_line(event))
    return value


def _tagged(event: Any) -> Any:
    """Return the value of a scalar with an explicit tag, such as ``!!str 12``."""
    if event.tag in {"!", _TAG + "str"}:
        return event.value
    value = resolve_plain(event.value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        _TAG + "null": value is None,
        _TAG + "bool": isinstance(value, bool),
        _TAG + "int": is_number and isinstance(value, int),
        _TAG + "float": is_number,
    }
    if event.tag not in fits:
        raise BadYaml(f"the tag {_short_tag(event.tag)} is not supported", line=_line(event))
    if not fits[event.tag]:
        raise BadYaml(f"{event.value[:_SHOWN]!r} is no {_short_tag(event.tag)}", line=_line(event))
    return value
