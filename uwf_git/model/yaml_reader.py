"""Read YAML 1.2 from untrusted bytes into JSON values with their lines; the only use of PyYAML.

The values are plain JSON, duplicate keys are refused, and every cost is limited. PyYAML's own
constructor is not used: it follows YAML 1.1, keeps the last of two equal keys, lets aliases
multiply, and recurses without limit. Its events are fine. libyaml is used if PyYAML was built with
it; both readers give the same values.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from uwf_git.errors import Problem
from uwf_git.model.yaml_include import (
    BadIncludes,
    BadYaml,
    CannotInclude,
    IncludedNotJson,
    Includes,
    YamlDocument,
    YamlNode,
    decode_text,
    is_json,
    is_yaml,
    json_as_yaml,
)
from uwf_git.model.yaml_render import resolve_plain

__all__ = ["MAX_DEPTH", "MAX_NODES", "MAX_SOURCE_BYTES", "BadYaml", "YamlDocument", "parse_yaml"]

MAX_SOURCE_BYTES = 1024 * 1024
MAX_DEPTH = 100
_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
MAX_NODES = 200_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

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
_NOT_TEXT = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)

_HALF_PAIR = re.compile("[\ud800-\udfff]")


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
    try:
        return _Builder(yaml.parse(text, Loader=_LOADER), reading, chain).build_document()
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
            f"the character U+{code:04X} is not allowed in a file; "
            f'write "\\u{code:04x}" in double quotes if it is meant',
            line=_line_at(text, strange.start()),
        )
    return text


def _syntax_error(error: yaml.MarkedYAMLError, text: str) -> BadYaml:
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

    def __init__(self, events: Iterator[Any], reading: _Reading, chain: tuple[str, ...]) -> None:
        self._events = events
        self._reading = reading
        self._chain = chain
        # The caller names the document itself.
        self._file = chain[-1] if len(chain) > 1 else None
        self._anchors: dict[str, YamlNode | None] = {}
        self._nodes = 0

    def build_document(self) -> YamlNode:
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

    def _build(self, event: Any, *, depth: int) -> YamlNode:
        if isinstance(event, yaml.AliasEvent):
            return self._resolve_alias(event, depth=depth)
        self._count(1, event)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            node = self._build_scalar(event, depth=depth)
        else:
            self._check_depth(depth + 1, event)
            if isinstance(event, yaml.MappingStartEvent):
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
        if is_json(path):
            return _parse(json_as_yaml(content), self._reading, (*self._chain, path))
        if is_yaml(path):
            return _parse(_decode(content), self._reading, (*self._chain, path))
        text = decode_text(content)
        return YamlNode(text, 1, size=_weight(text), file=path)

    def _build_mapping(self, start: Any, *, depth: int) -> YamlNode:
        _check_tag(start, "map")
        fields: dict[str, Any] = {}
        node = YamlNode(fields, _line(start), height=1, file=self._file)
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = _line(event)
            if getattr(event, "tag", None) == _INCLUDE:
                raise BadYaml("a key cannot be included; only a value can", line=line)
            key = self._build(event, depth=depth).value
            if not isinstance(key, str):
                raise BadYaml(_bad_key(event), line=line)
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
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            item = self._build(event, depth=depth)
            node.add(len(items), item, line=_line(event))
            items.append(item.value)
        return node

    def _resolve_alias(self, event: Any, *, depth: int) -> YamlNode:
        if event.anchor not in self._anchors:
            name = event.anchor[:_SHOWN]
            raise BadYaml(f"the alias *{name} has no anchor before it", line=_line(event))
        node = self._anchors[event.anchor]
        if node is None:
            name = event.anchor[:_SHOWN]
            raise BadYaml(f"the alias *{name} contains itself", line=_line(event))
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


def _is_nothing(event: Any) -> bool:
    return (
        isinstance(event, yaml.ScalarEvent)
        and event.value == ""
        and event.implicit[0]
        and event.tag is None
        and event.anchor is None
    )


def _weight(value: Any) -> int:
    return 1 + len(value) // _CHARACTERS_OF_ONE_VALUE if isinstance(value, str) else 1


def _bad_key(event: Any) -> str:
    if isinstance(event, yaml.ScalarEvent) and event.value:
        return f'the key {event.value} is not text; write "{event.value}"'
    return "a key must be text"


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
