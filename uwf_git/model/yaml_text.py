"""Reading YAML: from bytes that anybody may have written to JSON values with their lines.

Owns: the only use of PyYAML, and every limit on a file. Knows nothing of: workflows.
Always true: a document that parsed holds plain JSON values, no key was lost to a duplicate, and
reading costs no more than its limits, whatever the bytes are.
PyYAML's own constructor is not used: it follows YAML 1.1, keeps the last of two equal keys, lets
aliases multiply, and recurses as deep as the file says. Its events are fine. libyaml is used
when PyYAML was built with it; both readers give the same values.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from uwf_git.errors import Refused
from uwf_git.model.yaml_scalar import resolve_plain

MAX_SOURCE_BYTES = 1024 * 1024
MAX_DEPTH = 100
MAX_NODES = 200_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_SHOWN = 60
_TAG = "tag:yaml.org,2002:"
_LINE_BREAK = re.compile(r"\r\n|\r|\n")

# Control characters and half surrogates are no text. U+0085, U+2028 and U+2029 are line breaks
# to YAML 1.1, which PyYAML follows, and ordinary characters to YAML 1.2.
_NOT_TEXT = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)

_HALF_PAIR = re.compile("[\ud800-\udfff]")


class BadYaml(Refused):
    """The bytes are not one YAML document of JSON values within the limits."""

    code = "bad-yaml"

    def __init__(self, problem: str, *, line: int | None = None) -> None:
        where = "" if line is None else f"line {line}: "
        super().__init__(f"{where}{problem}", problem=problem, line=line)
        self.problem = problem
        self.line = line


@dataclass(slots=True)
class _Node:
    """A value, where its parts stand, and how much an alias to it repeats."""

    value: Any
    line: int
    parts: dict[str | int, tuple[int, "_Node"]] = field(default_factory=dict)
    size: int = 1
    height: int = 0
    """Levels of collections: 0 for a scalar."""

    def add(self, key: str | int, part: "_Node", *, line: int) -> None:
        self.parts[key] = line, part
        self.size += part.size
        self.height = max(self.height, part.height + 1)


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One parsed document. Aliases share their value: treat it as read-only."""

    value: Any
    """Plain JSON: dicts with string keys, lists, strings, finite numbers, booleans, None."""

    _root: _Node = field(repr=False, compare=False)

    def line(self, path: tuple[str | int, ...]) -> int | None:
        """Give the line (from 1) of the key or the list item that *path* names.

        None means that there is nothing at that path.
        """
        line, node = self._root.line, self._root
        for part in path:
            if part not in node.parts:
                return None
            line, node = node.parts[part]
        return line


def parse_yaml(source: bytes | str) -> YamlDocument:
    """Read one YAML 1.2 document of JSON values.

    Raises:
        BadYaml: *source* is too large, no text, no YAML, empty, more than one document, or
            holds what JSON cannot; the first such thing, with its line.
    """
    text = _check_text(_decode(source))
    try:
        root = _Builder(yaml.parse(text, Loader=_LOADER)).build_document()
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text) from error
    except (ValueError, OverflowError) as error:
        # PyYAML without libyaml lets chr() and int() speak for themselves.
        raise BadYaml("an escape or a version in the file is beyond all numbers") from error
    return YamlDocument(root.value, root)


def _decode(source: bytes | str) -> str:
    size = len(source)
    if isinstance(source, str) and size <= MAX_SOURCE_BYTES:
        size = len(source.encode("utf-8", "surrogatepass"))
    if size > MAX_SOURCE_BYTES:
        raise BadYaml(f"the file is larger than {MAX_SOURCE_BYTES // (1024 * 1024)} MiB")
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
    strange = _NOT_TEXT.search(text)
    if strange:
        code = ord(strange[0])
        raise BadYaml(
            f"the character U+{code:04X} may not stand in a file as it is; "
            f'write "\\u{code:04x}" in double quotes if it is meant',
            line=_line_at(text, strange.start()),
        )
    return text


def _syntax_error(error: yaml.MarkedYAMLError, text: str) -> BadYaml:
    mark = error.problem_mark or error.context_mark
    problem = " ".join((error.problem or "not YAML").split())[: 2 * _SHOWN]
    if error.context:
        problem += f" ({' '.join(error.context.split())})"
    if "cannot start any token" in problem:
        problem += "; indent with blanks, not tabs, and quote text that starts with @ or `"
    # What is missing at the end is missing after the last line that says something.
    last = _line_at(text, len(text.rstrip()))
    return BadYaml(problem, line=None if mark is None else min(mark.line + 1, last))


def _line_at(text: str, position: int) -> int:
    return len(_LINE_BREAK.findall(text, 0, position)) + 1


def _line(event: Any) -> int:
    line: int = event.start_mark.line + 1
    return line


class _Builder:
    """Turns events into nodes; one recursion a level, of which there are at most MAX_DEPTH."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._anchors: dict[str, _Node | None] = {}
        self._nodes = 0

    def build_document(self) -> _Node:
        """Build the one document of the stream."""
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise BadYaml("the file is empty")
        first = next(self._events)
        root = self._build(first, depth=0)
        if _is_nothing(first):
            raise BadYaml("the file is empty")
        next(self._events)
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise BadYaml("a second document starts here; one file holds one", line=_line(after))
        return root

    def _build(self, event: Any, *, depth: int) -> _Node:
        if isinstance(event, yaml.AliasEvent):
            return self._resolve_alias(event, depth=depth)
        self._count(1, event)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            node = _Node(_scalar(event), _line(event))
        else:
            self._check_depth(depth + 1, event)
            if isinstance(event, yaml.MappingStartEvent):
                node = self._build_mapping(event, depth=depth + 1)
            else:
                node = self._build_sequence(event, depth=depth + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _build_mapping(self, start: Any, *, depth: int) -> _Node:
        _check_tag(start, "map")
        fields: dict[str, Any] = {}
        node = _Node(fields, _line(start), height=1)
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = _line(event)
            key = self._build(event, depth=depth).value
            if not isinstance(key, str):
                raise BadYaml(_bad_key(event), line=line)
            if key in fields:
                before = node.parts[key][0]
                raise BadYaml(
                    f"the key {key[:_SHOWN]!r} is there twice, first on line {before}", line=line
                )
            item = self._build(next(self._events), depth=depth)
            fields[key] = item.value
            node.add(key, item, line=line)
        return node

    def _build_sequence(self, start: Any, *, depth: int) -> _Node:
        _check_tag(start, "seq")
        items: list[Any] = []
        node = _Node(items, _line(start), height=1)
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            item = self._build(event, depth=depth)
            node.add(len(items), item, line=_line(event))
            items.append(item.value)
        return node

    def _resolve_alias(self, event: Any, *, depth: int) -> _Node:
        if event.anchor not in self._anchors:
            name = event.anchor[:_SHOWN]
            raise BadYaml(f"the alias *{name} has no anchor before it", line=_line(event))
        node = self._anchors[event.anchor]
        if node is None:
            name = event.anchor[:_SHOWN]
            raise BadYaml(f"the alias *{name} stands inside itself", line=_line(event))
        self._count(node.size, event)
        self._check_depth(depth + node.height, event)
        return node

    def _count(self, nodes: int, event: Any) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise BadYaml(f"more than {MAX_NODES:,} values, aliases counted", line=_line(event))

    def _check_depth(self, depth: int, event: Any) -> None:
        if depth > MAX_DEPTH:
            raise BadYaml(f"nested more than {MAX_DEPTH} levels deep", line=_line(event))


def _is_nothing(event: Any) -> bool:
    return (
        isinstance(event, yaml.ScalarEvent)
        and event.value == ""
        and event.implicit[0]
        and event.tag is None
        and event.anchor is None
    )


def _bad_key(event: Any) -> str:
    if isinstance(event, yaml.ScalarEvent) and event.value:
        return f'the key {event.value} is not text; write "{event.value}"'
    return "a key must be text"


def _check_tag(event: Any, kind: str) -> None:
    if event.tag not in {None, "!", _TAG + kind}:
        raise BadYaml(f"the tag {_short_tag(event.tag)} is not known here", line=_line(event))


def _short_tag(tag: str) -> str:
    short = f"!!{tag.removeprefix(_TAG)}" if tag.startswith(_TAG) else tag
    # A tag may hold any character as %1b; repr keeps it from the terminal.
    return repr(short[:_SHOWN])[1:-1]


def _scalar(event: Any) -> Any:
    value = _untagged(event) if event.tag is None else _tagged(event)
    if isinstance(value, float) and not math.isfinite(value):
        raise BadYaml(
            f"{event.value[:_SHOWN]} is a number that JSON does not have; quote it if it is text",
            line=_line(event),
        )
    # The reader without libyaml lets "\ud800" through.
    if isinstance(value, str) and not value.isascii() and _HALF_PAIR.search(value):
        raise BadYaml("half of a surrogate pair is not text", line=_line(event))
    return value


def _untagged(event: Any) -> Any:
    is_plain = event.implicit[0]
    return resolve_plain(event.value) if is_plain else event.value


def _tagged(event: Any) -> Any:
    """Give the value of a scalar with an explicit tag, such as ``!!str 12``."""
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
        raise BadYaml(f"the tag {_short_tag(event.tag)} is not known here", line=_line(event))
    if not fits[event.tag]:
        raise BadYaml(f"{event.value[:_SHOWN]!r} is no {_short_tag(event.tag)}", line=_line(event))
    return value
