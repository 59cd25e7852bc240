"""Find the meta in an agent's text: front matter, a fenced block, or a JSON object.

No value is invented. What is not at the beginning of the answer counts only if it fits the role's
schema.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from uwf_git.agentkit.extraction.role_object import find_misfit
from uwf_git.agents.reply import (
    BadJson,
    FrontMatterUnclosed,
    on_one_line,
    parse_strict_json,
    parse_strict_json_at,
    show_beginning,
    split_front_matter,
)
from uwf_git.errors import AgentFailed

Rung = Literal["front-matter", "block", "json"]

# Fields are at the beginning or at the end of an answer.
_SEARCHED = 200_000
_MOST_PLACES = 50
_MOST_FAILURES = 1_000

_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})[ \t]*([\w+-]*)")
_RULE = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)
_OBJECT = re.compile(r'\{(?=\s*["}])')


class NoMeta(AgentFailed):
    code = "no-meta"

    def __init__(self, problem: str, text: str, *, usage: Mapping[str, Any] | None = None) -> None:
        beginning = show_beginning(text)
        super().__init__(
            f"the answer holds no fields that fit the role's schema: {on_one_line(problem)}"
            + (f"; it begins: {beginning}" if beginning else "; it is empty"),
            hint="start the answer with --- and its fields, then a second --- and the text",
            problem=problem,
        )
        self.problem = problem
        self.text = text

        self.usage: Mapping[str, Any] = usage or {}
        """What it cost, as far as known."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The fields of an answer, and the rest of the answer."""

    meta: Any
    content: str
    """The answer, without its fields if they were at the beginning."""

    rung: Rung


def extract_meta(text: str, schema: dict[str, Any] | bool) -> Extracted:  # noqa: FBT001 (true is a schema, no switch)
    """Find the fields in an answer.

    Front matter at the very beginning is returned even if it does not fit *schema*, unless
    something else fits, so that the caller can report what is wrong with it. Otherwise, in this
    order: front matter in a code fence, or after a preamble; the last fenced block of JSON or
    YAML; the last JSON object. These count only if they fit.

    Raises:
        NoMeta: nothing fits; it names what is wrong with the closest.
    """
    certain, closest = _read_front_matter(text)
    if certain is not None and _has_required(certain.meta, schema):
        return certain
    for guess in _guesses(text):
        problem = find_misfit(guess.meta, schema)
        if not problem:
            return guess
        closest = closest or problem
    if certain is not None:
        return certain
    raise NoMeta(closest or "there is neither front matter nor JSON", text)


def _guesses(text: str) -> Iterator[Extracted]:
    """Yield candidates for the fields, the likeliest first."""
    blocks = list(_find_blocks(text))[: -_MOST_PLACES - 1 : -1]
    for block in blocks:
        front, _ = _read_front_matter(block.body)
        if front is not None:
            rest = front.content + text[block.end :]
            stands_first = not text[: block.start].strip(" \t\r\n\ufeff")
            yield Extracted(front.meta, rest if stands_first else text, "front-matter")
    # After a preamble, or at the end.
    pairs = list(pairwise(_RULE.finditer(text)))
    for opening, closing in pairs[:_MOST_PLACES] + pairs[_MOST_PLACES:][-_MOST_PLACES:]:
        meta, _ = _read_yaml(text[opening.end() : closing.start()])
        if meta is not None:
            yield Extracted(meta, text, "front-matter")
    for block in blocks:
        value = _read_block(block)
        if value is not None:
            yield Extracted(value, text, "block")
    for value in _find_objects(text[-_SEARCHED:])[::-1]:
        yield Extracted(value, text, "json")


def _read_front_matter(text: str) -> tuple[Extracted | None, str]:
    """Read the front matter at the beginning of *text*; else return why there is none."""
    try:
        front = split_front_matter(text)
    except FrontMatterUnclosed as error:
        return None, error.message
    if front is None:
        return None, ""
    meta, problem = _read_yaml(front.source)
    return None if meta is None else Extracted(meta, front.content, "front-matter"), problem


def _read_yaml(source: str) -> tuple[dict[str, Any] | None, str]:
    """Read the fields in *source*; else return why there are none."""
    # PyYAML costs 12 ms; answers with native structured output do not need it.
    from uwf_git.model.yaml.reader import BadYaml, parse_yaml  # noqa: PLC0415

    try:
        value = parse_yaml(source).value
    except BadYaml as error:
        return None, f"the front matter is not YAML: {error.message}"
    return (value, "") if isinstance(value, dict) else (None, "the front matter has no fields")


@dataclass(frozen=True, slots=True)
class _Block:
    """A fenced block: its place in the text, and its language."""

    start: int
    end: int
    language: str
    body: str


def _find_blocks(text: str) -> Iterator[_Block]:
    position = max(0, len(text) - _SEARCHED)
    start, begin, fence, language = 0, 0, "", ""
    for line in text[position:].splitlines(keepends=True):
        opening = _FENCE.match(line)
        if not fence and opening:
            fence, language = opening[1], opening[2].lower()
            start, begin = position, position + len(line)
        elif fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            yield _Block(start, position + len(line), language, text[begin:position])
            fence = ""
        position += len(line)


def _read_block(block: _Block) -> Any:
    """Read a fenced block in its language; None if it is in another."""
    if block.language in {"json", ""}:
        try:
            return parse_strict_json(block.body.strip())
        except BadJson:
            pass
    return _read_yaml(block.body)[0] if block.language in {"yaml", "yml", ""} else None


def _find_objects(text: str) -> list[Any]:
    """List the outermost JSON objects in *text*, first to last."""
    found: list[Any] = []
    failures = 0
    match = _OBJECT.search(text)
    while match and failures < _MOST_FAILURES:
        try:
            value, end = parse_strict_json_at(text, match.start())
            found.append(value)
        except BadJson:
            failures, end = failures + 1, match.end()
        match = _OBJECT.search(text, end)
    return found


def _has_required(meta: dict[str, Any], schema: Any) -> bool:
    """Return whether *meta* has the required fields; the engine checks the rest."""
    required = schema.get("required", []) if isinstance(schema, dict) else []
    return meta.keys() >= set(required)
