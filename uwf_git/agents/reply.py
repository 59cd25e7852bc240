"""An agent's output read as its reply: an object, or front matter with a text."""

import json
import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, NoReturn

from uwf_git.agents.command_line import Protocol
from uwf_git.errors import AgentFailed
from uwf_git.model.node import NotCanonical, canonical
from uwf_git.model.yaml.render import read_plain

# JSON that agents print, read strictly: no duplicate keys, nothing that a node could not hold.
#
# A value that was parsed is in canonical form.


class BadJson(AgentFailed):
    """The text is not JSON that a node can hold."""

    code = "bad-json"

    def __init__(self, problem: str) -> None:
        super().__init__(f"not JSON: {problem}", problem=problem)
        self.problem = problem


def parse_strict_json(text: str) -> Any:
    """Return *text*, a JSON value that a node can hold, in canonical form, or raise BadJson."""
    value, end = parse_strict_json_at(text, 0)
    rest = text[end:].lstrip()
    if rest:
        line = text.count("\n", 0, len(text) - len(rest)) + 1
        raise BadJson(f"there is more text after the value on line {line}")
    return value


def parse_strict_json_at(text: str, start: int) -> tuple[Any, int]:
    """Return the JSON value that begins at *start*, and where it ends."""
    while start < len(text) and text[start] in " \t\r\n":
        start += 1
    try:
        value, end = _DECODER.raw_decode(text, start)
        return canonical(value), end
    except json.JSONDecodeError as error:
        problem = f"{error.msg.lower()} (line {error.lineno}, column {error.colno})"
        raise BadJson(problem) from None
    except NotCanonical as error:
        raise BadJson(error.message) from error
    except RecursionError:
        raise BadJson("it is nested too deeply") from None
    except ValueError:
        # Python refuses integers of more than 4,300 digits.
        raise BadJson("a number has too many digits") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise BadJson(f"the key {key!r:.60} is there twice")
        fields[key] = value
    return fields


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise BadJson(f"the number {text:.40} is too large")
    return number


def _refuse_constant(text: str) -> NoReturn:
    raise BadJson(f"{text} is a number in JavaScript only")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant, parse_float=_finite
)


# Quoted output on one line, printable on any terminal.


def on_one_line(text: str) -> str:
    """Return *text* without control characters and line breaks, runs of blanks as one."""
    cleaned = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(cleaned.split())


def show_beginning(text: str, *, limit: int = 80) -> str:
    """Return the beginning of *text* on one line, with an ellipsis if it was cut."""
    # Cleaning shrinks the text; four times the limit is enough for all but pages of blanks.
    shown = on_one_line(text[: 4 * limit])
    is_cut = len(shown) > limit or len(text) > 4 * limit
    return shown[:limit] + ("…" if is_cut else "")


# Front matter: YAML between two lines of dashes, then text. Engine and kit share this one reader.
#
# The text after the block is kept character by character.

_BYTE_ORDER_MARK = "\ufeff"
_RULE = "---"


class FrontMatterUnclosed(AgentFailed):
    """No second line of dashes closes the front matter."""

    code = "front-matter-unclosed"

    def __init__(self, line: int) -> None:
        super().__init__(f"the front matter that begins on line {line} has no closing ---")


class FrontMatter(NamedTuple):
    source: str
    """The YAML between the dashes."""

    content: str
    """The text after the line of the closing dashes."""

    line: int
    """The line of the text on which the YAML begins, from 1."""


def split_front_matter(text: str) -> FrontMatter | None:
    """Split *text*; return None if it does not begin with a line of three dashes.

    A byte order mark and blank lines before it are skipped: models and editors add them.
    """
    start, line = _skip_blank(text)
    opening, position = _line_at(text, start)
    if not _is_rule(opening):
        return None
    begin = position
    while position < len(text):
        closing, after = _line_at(text, position)
        if _is_rule(closing):
            return FrontMatter(text[begin:position], text[after:], line + 1)
        position = after
    raise FrontMatterUnclosed(line)


def _skip_blank(text: str) -> tuple[int, int]:
    """Return start and number of the first line that is not blank."""
    position, line = (1 if text.startswith(_BYTE_ORDER_MARK) else 0), 1
    while position < len(text):
        content, after = _line_at(text, position)
        if content.strip(" \t\r"):
            break
        position, line = after, line + 1
    return position, line


def _line_at(text: str, start: int) -> tuple[str, int]:
    """Return the line at *start* without its line feed, and the start of the next line."""
    end = text.find("\n", start)
    return (text[start:], len(text)) if end < 0 else (text[start:end], end + 1)


def _is_rule(line: str) -> bool:
    return line.startswith(_RULE) and not line[len(_RULE) :].strip(" \t\r")


# An agent's output read as its reply: an object, front matter with a text, or the bare meta.
#
# An agent of a flow that no role describes may print any text as well.
#
# The same bytes give the same reply, and what was parsed can stand in a node. The role's schema
# is checked elsewhere.

Form = Literal["object", "front-matter", "bare", "text"]
BadReplyKind = Literal[
    "empty", "no-json", "bad-json", "not-an-object", "no-meta", "wrong-type", "bad-front-matter"
]

# In the order of AgentReply.
_KINDS: Mapping[str, type] = {
    "content": str,
    "usage": dict,
    "state": dict,
    "session": str,
    "rung": str,
}
REPLY_FIELDS = frozenset({"meta", *_KINDS})

_AROUND = " \t\r\n\ufeff"


class BadReply(AgentFailed):
    """The agent's output is not a reply."""

    code = "bad-reply"

    def __init__(self, kind: BadReplyKind, problem: str, output: str) -> None:
        # The problem may quote the output too.
        message = on_one_line(problem)
        beginning = show_beginning(output)
        super().__init__(
            f"{message}; it begins: {beginning}" if beginning else message,
            hint='an agent prints {"meta": {…}, "content": "…"}, or its meta alone, as one JSON '
            "object on stdout, and its log on stderr",
            kind=kind,
        )
        self.kind = kind


class AgentReply(NamedTuple):
    """A reply whose meta is not checked yet."""

    meta: Any

    content: str
    """The text; the whole output if the agent named none."""

    form: Form

    raw: bytes | None = None
    """The whole output if it was not UTF-8; the text has U+FFFD then."""

    usage: dict[str, Any] | None = None
    state: dict[str, Any] | None = None
    """A JSON merge patch."""

    session: str | None = None
    rung: str | None = None
    """How the agent kit found the meta."""


def parse_reply(stdout: bytes, *, protocol: Protocol, is_free: bool = False) -> AgentReply:
    """Return an agent's output as its reply.

    In this order: a JSON object with a ``meta``; YAML front matter and a text; with the protocol
    ``flags``, an object that is the meta itself. With ``flags`` an object is of the first form only
    if it has no other keys than that form, since a role's own field may be called meta. Elsewhere
    unknown keys are ignored: later agents may print more.

    If the agent *is_free*, an object without a ``meta`` is the meta itself, and any other output is
    a text, with an empty meta. An object with a ``content`` and only the keys that may stand beside
    it is a reply without fields.
    """
    try:
        text, raw = stdout.decode(), None
    except UnicodeDecodeError:
        text, raw = stdout.decode(errors="replace"), stdout
    bare = text.strip(_AROUND)
    if not bare:
        raise BadReply("empty", "the agent printed nothing on stdout", "")
    try:
        return _read_any(bare, text, protocol=protocol, is_free=is_free)._replace(raw=raw)
    except BadReply as error:
        if not is_free or error.kind == "wrong-type":
            raise
    return AgentReply(meta={}, content=bare, form="text", raw=raw)


def _read_any(bare: str, text: str, *, protocol: Protocol, is_free: bool) -> AgentReply:
    if bare.startswith("{"):
        return _read_object(bare, text, protocol=protocol, is_free=is_free)
    try:
        front = split_front_matter(text)
    except FrontMatterUnclosed as error:
        raise BadReply("bad-front-matter", error.message, text) from error
    if front is not None:
        return _read_front_matter(front, text)
    try:
        parse_strict_json(bare)
    except BadJson:
        problem = "the agent's output is neither a JSON object nor text with front matter"
        raise BadReply("no-json", problem, bare) from None
    raise BadReply("not-an-object", "the agent's output is JSON, but not an object", bare)


def _read_object(bare: str, text: str, *, protocol: Protocol, is_free: bool) -> AgentReply:
    try:
        fields = parse_strict_json(bare)
    except BadJson as error:
        raise BadReply("bad-json", f"the agent's output is {error.message}", text) from error
    if is_free and _has_only_content(fields):
        fields["meta"] = {}
    is_bare = is_free and "meta" not in fields
    is_reply = "meta" in fields and fields.keys() <= REPLY_FIELDS
    if is_bare or (protocol == "flags" and not is_reply):
        return AgentReply(meta=fields, content=text, form="bare")
    if "meta" not in fields:
        keys = ", ".join(sorted(fields)) or "nothing"
        raise BadReply("no-meta", f'the agent\'s object has no "meta", only {keys:.200}', text)
    content, *others = (_field(fields, name, kind, text) for name, kind in _KINDS.items())
    return AgentReply(fields["meta"], text if content is None else content, "object", None, *others)


def _has_only_content(fields: Mapping[str, Any]) -> bool:
    """Check whether an object has a text, and else only what a reply has beside its meta."""
    return "content" in fields and all(
        name in _KINDS and isinstance(value, _KINDS[name]) for name, value in fields.items()
    )


def _field(fields: dict[str, Any], name: str, kind: type, text: str) -> Any:
    """Return an optional field; null counts as absent, as many languages print it so."""
    value = fields.get(name)
    if value is None or isinstance(value, kind):
        return value
    expected = "a string" if kind is str else "an object"
    raise BadReply("wrong-type", f'"{name}" in the agent\'s output is not {expected}', text)


def _read_front_matter(front: FrontMatter, text: str) -> AgentReply:
    if not front.source.strip():
        raise BadReply("not-an-object", "the agent's front matter is empty", text)
    plain = read_plain(front.source)
    try:
        meta = canonical(_read_yaml(front, text) if plain is None else plain)
    except NotCanonical as error:
        problem = f"the agent's front matter: {error.message}"
        raise BadReply("bad-front-matter", problem, text) from error
    if not isinstance(meta, dict):
        raise BadReply("not-an-object", "the agent's front matter has no fields", text)
    return AgentReply(meta=meta, content=front.content, form="front-matter")


def _read_yaml(front: FrontMatter, text: str) -> Any:
    # PyYAML costs as much start-up as all of this module.
    from uwf_git.model.yaml.reader import BadYaml, parse_yaml  # noqa: PLC0415

    try:
        return parse_yaml(front.source).value
    except BadYaml as error:
        line = front.line + (error.line or 1) - 1
        problem = f"the agent's front matter is not YAML: {error.problem} (line {line})"
        raise BadReply("bad-front-matter", problem, text) from error
