"""An agent's output read as its reply: an object, front matter with a text, or the bare meta.

An agent of a flow that no role describes may print any text as well.

The same bytes give the same reply, and what was parsed can stand in a node. The role's schema is
checked elsewhere.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from uwf_git.agents.command_line import Protocol
from uwf_git.agents.front_matter import FrontMatter, FrontMatterUnclosed, split_front_matter
from uwf_git.agents.one_line import on_one_line, show_beginning
from uwf_git.agents.strict_json import BadJson, parse_strict_json
from uwf_git.errors import AgentFailed
from uwf_git.model.canonical import NotCanonical, canonical
from uwf_git.model.yaml.plain import read_plain

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
_FIELDS = frozenset({"meta", *_KINDS})

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
            hint='an agent prints {"meta": {…}, "content": "…"} on stdout, and its log on stderr',
            kind=kind,
        )
        self.kind = kind


class AgentReply(NamedTuple):
    """A reply whose meta is not checked yet."""

    meta: Any

    content: str
    """The text; the whole output if the agent named none."""

    form: Form
    """How the reply was written."""

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

    In this order: one JSON object with a ``meta``; YAML front matter and a text; with the protocol
    ``flags``, an object that is the meta itself. There an object is of the first form only if it
    has no other keys than that form's, since a role's own field may be called meta. Elsewhere
    unknown keys are ignored: later agents may print more.

    If the agent *is_free*, an object without a ``meta`` is the meta itself, and any other output
    is a text, with an empty meta. An object with a ``content`` and nothing but what stands beside
    one is a reply without fields.

    Raises:
        BadReply
    """
    try:
        text, raw = stdout.decode(), None
    except UnicodeDecodeError:
        text, raw = stdout.decode(errors="replace"), stdout
    bare = text.strip(_AROUND)
    if not bare:
        raise BadReply("empty", "the agent printed nothing on stdout", "")
    try:
        return _read_any(bare, text, raw=raw, protocol=protocol, is_free=is_free)
    except BadReply as error:
        if not is_free or error.kind == "wrong-type":
            raise
    return AgentReply(meta={}, content=bare, form="text", raw=raw)


def _read_any(
    bare: str, text: str, *, raw: bytes | None, protocol: Protocol, is_free: bool
) -> AgentReply:
    if bare.startswith("{"):
        return _read_object(bare, text, raw=raw, protocol=protocol, is_free=is_free)
    try:
        front = split_front_matter(text)
    except FrontMatterUnclosed as error:
        raise BadReply("bad-front-matter", error.message, text) from error
    if front is not None:
        return _read_front_matter(front, text, raw=raw)
    raise _bad_reply(bare)


def _read_object(
    bare: str, text: str, *, raw: bytes | None, protocol: Protocol, is_free: bool
) -> AgentReply:
    try:
        fields = parse_strict_json(bare)
    except BadJson as error:
        raise BadReply("bad-json", f"the agent's output is {error.message}", text) from error
    if is_free and _has_only_content(fields):
        fields["meta"] = {}
    is_bare = is_free and "meta" not in fields
    if is_bare or (protocol == "flags" and not ("meta" in fields and fields.keys() <= _FIELDS)):
        return AgentReply(meta=fields, content=text, form="bare", raw=raw)
    if "meta" not in fields:
        keys = ", ".join(sorted(fields)) or "nothing"
        raise BadReply("no-meta", f'the agent\'s object has no "meta", only {keys:.200}', text)
    content, *others = (_field(fields, name, kind, text) for name, kind in _KINDS.items())
    return AgentReply(fields["meta"], text if content is None else content, "object", raw, *others)


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


def _read_front_matter(front: FrontMatter, text: str, *, raw: bytes | None) -> AgentReply:
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
    return AgentReply(meta=meta, content=front.content, form="front-matter", raw=raw)


def _read_yaml(front: FrontMatter, text: str) -> Any:
    # PyYAML costs as much start-up as all of this module.
    from uwf_git.model.yaml.reader import BadYaml, parse_yaml  # noqa: PLC0415

    try:
        return parse_yaml(front.source).value
    except BadYaml as error:
        line = front.line + (error.line or 1) - 1
        problem = f"the agent's front matter is not YAML: {error.problem} (line {line})"
        raise BadReply("bad-front-matter", problem, text) from error


def _bad_reply(bare: str) -> BadReply:
    try:
        parse_strict_json(bare)
    except BadJson:
        problem = "the agent's output is neither a JSON object nor text with front matter"
        return BadReply("no-json", problem, bare)
    return BadReply("not-an-object", "the agent's output is JSON, but not an object", bare)
