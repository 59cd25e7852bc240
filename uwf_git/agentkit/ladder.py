"""The extraction ladder: from a question to a meta that fits, by the cheapest way.

A meta comes from the agent, or from a configured extractor that read the agent's text; it fits the
role's schema. The content is that of the first answer; the usage is the sum of all questions.
Source: seed 003 (three phases); seed 000 section 1.5.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from uwf_git.agentkit.turn import Adapter, AdapterAnswer, AdapterQuestion, AgentResult, AskFailed
from uwf_git.agents import command_line
from uwf_git.engine import turn_context
from uwf_git.engine.prompt import build_answer_format, literal
from uwf_git.engine.turn_context import AgentContext, ExtractContext, RoleView
from uwf_git.errors import AgentFailed, UwfError
from uwf_git.model.plain_schema import is_plainly_valid, schema_check
from uwf_git.model.thread import add_usage
from uwf_git.model.yaml_reader import BadYaml, parse_yaml

# Check a meta against its schema, and ask for an answer as one object, `content` and `meta`.


def find_misfit(meta: Any, schema: dict[str, Any] | bool) -> str:  # noqa: FBT001 (true is a schema, no switch)
    """Return why *meta* does not fit *schema*; "" if it does."""
    try:
        if is_plainly_valid(schema, meta):
            return ""
    except RecursionError:
        return "it is nested too deeply"
    for problem in schema_check.check_value(schema, meta):
        return f"{problem.path}: {problem.message}" if problem.path else problem.message
    return ""


class WantedObject(NamedTuple):
    """An object that a model is asked for."""

    schema: Mapping[str, Any]

    description: str

    guide: str = ""
    """More words for the model, in every request for the object."""

    is_told_in_words: bool = True
    """Whether the way ``plain`` adds the schema in words; if not, the prompt itself asks."""


# Below these are values, in which "$ref" is an ordinary key.
_VALUES = {"const", "enum", "default", "examples"}

# The keys below these are names that the schema's author chose.
_NAMED = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}


def move_schema(schema: Any, to: str) -> Any:
    """Return *schema* as it must be written at *to* (``#/properties/meta``) of another schema."""
    if isinstance(schema, dict):
        # They would change what references are relative to.
        schema = {key: each for key, each in schema.items() if key not in {"$id", "$schema"}}
    return _move(schema, to)


def _move(schema: Any, to: str) -> Any:
    if isinstance(schema, list):
        return [_move(each, to) for each in schema]
    if not isinstance(schema, dict):
        return schema
    moved: dict[str, Any] = {}
    for key, each in schema.items():
        if key == "$ref" and isinstance(each, str) and each.startswith("#"):
            moved[key] = to + each[1:]
        elif key in _VALUES:
            moved[key] = each
        elif key in _NAMED and isinstance(each, dict):
            moved[key] = {name: _move(part, to) for name, part in each.items()}
        else:
            moved[key] = _move(each, to)
    return moved


GUIDE = (
    "Your answer is taken as one JSON object with two fields. Put into `meta` the fields that the "
    "prompt asks for in front matter, and into `content` the text that it asks for after them: "
    "all that people, and those who work on after you, have to read. There is no front matter."
)

_DESCRIPTION = "Hand in the answer: `content`, its text, and `meta`, its fields."


def add_guide(prompt: str) -> str:
    """Add to *prompt* how to answer by an object."""
    return f"{prompt}\n{GUIDE}\n"


class RoleAnswer(NamedTuple):
    """The fields of a wanted object."""

    content: str
    meta: Any


def build_wanted_object(schema: dict[str, Any] | bool) -> WantedObject:  # noqa: FBT001 (true is a schema, no switch)
    """Return the object to request for a role whose meta has to fit *schema*."""
    content = {"type": "string", "description": "The whole text of the answer, in Markdown."}
    meta = {} if schema is True else move_schema(schema, "#/properties/meta")
    whole = {
        "type": "object",
        "properties": {"content": content, "meta": meta},
        "required": ["content", "meta"],
        "additionalProperties": False,
    }
    return WantedObject(whole, _DESCRIPTION, GUIDE, is_told_in_words=False)


def read_answer(
    value: dict[str, Any] | None,
    schema: dict[str, Any] | bool,  # noqa: FBT001 (true is a schema, no switch)
) -> RoleAnswer | None:
    """Return the two fields of *value*, or the bare meta, which some models send; else None."""
    if value is None:
        return None
    if "meta" in value:
        content = value.get("content")
        return RoleAnswer(content if isinstance(content, str) else "", value["meta"])
    return None if find_misfit(value, schema) else RoleAnswer("", value)


# Find the meta in an agent's text: front matter, a fenced block, or a JSON object.
#
# No value is invented. What is not at the beginning of the answer counts only if it fits the
# role's schema.


# Fields are at the beginning or at the end of an answer.
_SEARCHED = 200_000
_MOST_PLACES = 50
_MOST_FAILURES = 1_000

# One that is not closed goes on to the end.
_FENCED = re.compile(
    r"^ {0,3}(?P<fence>(?P<sign>[`~])(?P=sign){2,}+)[ \t]*+(?P<language>[\w+-]*+)[^\n]*+\n"
    r"(?P<body>.*?)(?:(?P<end>^[ \t]*+(?P=fence)(?P=sign)*+[ \t\r]*+(?:\n|\Z))|\Z)",
    re.DOTALL | re.MULTILINE,
)
_RULE = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)
_OBJECT = re.compile(r'\{(?=\s*["}])')

# What was begun and not ended is a thought as well; a tag in a code fence is a quotation.
_THOUGHT = r"<(?P<tag>think(?:ing)?)>.*?(?:</(?P=tag)>|\Z)"
_FIRST_THOUGHTS = re.compile(rf"[\s\ufeff]*+(?:{_THOUGHT}\s*+)+", re.DOTALL)
_LATER_THOUGHT = re.compile(
    rf"^[ \t]*+(?:(?P<fence>```|~~~).*?^[ \t]*+(?P=fence)|{_THOUGHT})", re.DOTALL | re.MULTILINE
)
_LONE_END = re.compile(r"^</think>[ \t\r]*$\s*", re.MULTILINE)


def drop_thoughts(text: str) -> str:
    """Return *text* without what a model thought before it answered.

    Servers such as ollama and vLLM leave it there, or only its end. Front matter begins no thought.
    """
    if first := _FIRST_THOUGHTS.match(text):
        return text[first.end() :]
    end = None if text.lstrip("\ufeff \t\r\n").startswith("---") else _LONE_END.search(text)
    return text[end.end() :] if end and "<think>" not in text[: end.start()] else text


def _blank_thoughts(text: str) -> str:
    """Return *text*, as long, with blanks instead of thoughts."""
    return _LATER_THOUGHT.sub(lambda each: each[0] if each["fence"] else " " * len(each[0]), text)


class NoMeta(AgentFailed):
    """Nothing in an answer fits the role's schema."""

    code = "no-meta"

    def __init__(self, problem: str, text: str, *, usage: Mapping[str, Any] | None = None) -> None:
        beginning, told = command_line.show_beginning(text), command_line.on_one_line(problem)
        super().__init__(
            f"the answer holds no fields that fit the role's schema: {told}"
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

    rung: Literal["front-matter", "block", "json"]


class _Block(NamedTuple):
    """A fenced block, or what is between two rules; its place in the text, and its language."""

    end: int
    start: int
    body: str
    language: str = ""


def extract_meta(text: str, schema: dict[str, Any] | bool) -> Extracted:  # noqa: FBT001 (true is a schema, no switch)
    """Find the fields in an answer.

    Front matter at the very beginning is returned even if it does not fit *schema*, unless
    something else fits, so that the caller can report what is wrong with it. Otherwise, in this
    order: the last front matter, in a code fence or not; the last fenced block of JSON or YAML;
    the last JSON object. These count only if they fit and do not contradict each other; what a
    block of fields quotes is a part of it. What a model thought is no part of the answer.

    Raises:
        NoMeta: nothing fits; it names what is wrong with the closest.
    """
    text = drop_thoughts(text)
    certain, closest = _read_front_matter(text)
    found = [] if certain is None else [certain]
    required = schema.get("required", []) if isinstance(schema, dict) else []
    # The engine checks the rest.
    if certain is None or not certain.meta.keys() >= set(required):
        fitting, closest = _find_fitting(text, schema, closest)
        found = fitting or found
    elif end := _LONE_END.search(certain.content):
        # They may be the draft in a thought that ends there.
        found += filter(None, _read_front_matter(certain.content[end.end() :])[:1])
    for other in found[1:]:
        if disputed := _find_disputed(found[0].meta, other.meta, schema):
            raise NoMeta(f"two blocks of fields disagree: {disputed}", text)
    if not found:
        raise NoMeta(closest or "there is neither front matter nor JSON", text)
    return found[0]


def _find_fitting(text: str, schema: Any, closest: str) -> tuple[list[Extracted], str]:
    """Return the last of each form that fits; also why the likeliest of the others does not."""
    found: dict[str, Extracted] = {}
    places: list[_Block] = []
    for place, guess in _list_guesses(text):
        if "json" in found or any(at.start <= place.start < at.end for at in places):
            continue
        if problem := find_misfit(guess.meta, schema):
            closest = closest or problem
        else:
            found.setdefault(guess.rung, guess)
            places.append(place)
    return list(found.values()), closest


def _find_disputed(meta: Any, other: Any, schema: Any) -> str:
    """Return a field that *schema* names and of which the two say different things; else ""."""
    if not isinstance(meta, dict) or not isinstance(other, dict):
        return ""
    disputed = (key for key in meta if other.get(key, meta[key]) != meta[key])
    return next((key for key in disputed if literal(key) in literal(schema)), "")


def _list_guesses(text: str) -> Iterator[tuple[_Block, Extracted]]:
    """Yield the candidates for the fields, form by form, and of each form the last first."""
    seen = _blank_thoughts(text)
    blocks = _list_blocks(seen)
    pairs = [(one.start(), two.end()) for one, two in pairwise(_RULE.finditer(seen))]
    pairs = pairs[:_MOST_PLACES] + pairs[_MOST_PLACES:][-_MOST_PLACES:]
    between = [_Block(end, start, seen[start:end]) for start, end in pairs]
    for place in sorted([*blocks, *between], reverse=True):
        if front := _read_front_matter(place.body)[0]:
            stands_first = not text[: place.start].strip(" \t\r\n\ufeff")
            content = front.content + text[place.end :] if stands_first else text
            yield place, Extracted(front.meta, content, "front-matter")
    for place in blocks:
        if (value := _read_block(place)) is not None:
            yield place, Extracted(value, text, "block")
    for place, value in _find_objects(seen)[::-1]:
        yield place, Extracted(value, text, "json")


def _read_front_matter(text: str) -> tuple[Extracted | None, str]:
    """Read the front matter at the beginning of *text*; else return why there is none."""
    try:
        front = command_line.split_front_matter(text)
    except command_line.FrontMatterUnclosed as error:
        return None, error.message
    if front is None:
        return None, ""
    meta, problem = _read_yaml(front.source)
    return None if meta is None else Extracted(meta, front.content, "front-matter"), problem


def _read_yaml(source: str) -> tuple[dict[str, Any] | None, str]:
    """Read the fields in *source*; else return why there are none."""
    try:
        value = parse_yaml(source).value
    except BadYaml as error:
        return None, f"the front matter is not YAML: {error.message}"
    return (value, "") if isinstance(value, dict) else (None, "the front matter has no fields")


def _list_blocks(text: str) -> list[_Block]:
    """List the last fenced blocks of *text*, the last first."""
    found = [each for each in _FENCED.finditer(text, max(0, len(text) - _SEARCHED)) if each["end"]]
    return [
        _Block(each.end(), each.start(), each["body"], each["language"].lower())
        for each in found[: -_MOST_PLACES - 1 : -1]
    ]


def _read_block(block: _Block) -> Any:
    """Read a fenced block in its language; None if it is in another."""
    if block.language in {"json", ""}:
        with suppress(command_line.BadJson):
            return command_line.parse_strict_json(block.body.strip())
    return _read_yaml(block.body)[0] if block.language in {"yaml", "yml", ""} else None


def _find_objects(text: str) -> list[tuple[_Block, Any]]:
    """List the outermost JSON objects in *text*, first to last."""
    found: list[tuple[_Block, Any]] = []
    failures, end = 0, 0
    for match in _OBJECT.finditer(text, max(0, len(text) - _SEARCHED)):
        if match.start() >= end and failures < _MOST_FAILURES:
            try:
                value, end = command_line.parse_strict_json_at(text, match.start())
                found.append((_Block(end, match.start(), ""), value))
            except command_line.BadJson:
                failures += 1
    return found


Extractor = Callable[[ExtractContext], AdapterAnswer]
"""Asks a model for the meta of an answer; it is in ``structured``."""


class Fallbacks(NamedTuple):
    """The sources of a meta besides the adapter."""

    reported: Callable[[], tuple[Any, str] | None] = lambda: None
    """Returns what the agent left in the role's output file, with "" or why that is no JSON."""

    submitted: Callable[[], Mapping[str, Any] | None] = lambda: None
    """Returns what the agent submitted by the tool ``submit_result``: ``meta``, and ``content``."""

    find_extractor: Callable[[], Extractor | None] = lambda: None
    """Returns the extractor, if there is one; called last."""

    most_corrections: int = 2
    note: Callable[[Mapping[str, Any]], None] = lambda _event: None


def extract_with_fallbacks(
    adapter: Adapter, context: AgentContext, question: AdapterQuestion, rungs: Fallbacks
) -> AgentResult:
    """Ask *adapter*, and find a meta that fits the role's schema in its answer.

    In this order: what the agent left in the role's output file; what it submitted by a tool; the
    program's own structured output; the fields in its text; a correction in the same
    conversation, at most ``most_corrections`` times; the extractor, if there is one. The result's
    ``rung`` names the source: ``file``, ``submitted``, ``native``, ``front-matter``, ``block``,
    ``json``, each followed by ``-corrected`` if the agent was asked again, or ``extractor``.

    Raises:
        AskFailed: the first question failed, or a correction by what is not about the answer.
        NoMeta: nothing fits; its ``text`` is the agent's first answer.
    """
    schema = context.current_role.output_schema
    question = replace(question, schema=schema if adapter.takes_schema else None)
    climbing = _Climb(adapter, context, rungs)
    try:
        first = climbing.ask_first(question)
    except AskFailed as failure:
        # It may have said nothing, and left its report or handed in its result.
        if failure.kind != "no-result" or (rungs.reported() or rungs.submitted()) is None:
            raise
        first = failure.partial or AdapterAnswer(text="")
    found = climbing.look(first, first=first)
    if isinstance(found, str):
        found = climbing.correct(question, first, found)
    met = climbing.outside
    if isinstance(found, str) and not (met and met.kind == "interrupted"):
        found = climbing.extract(first, found)
    if isinstance(found, str):
        # Thoughts alone have been paid for, too.
        text = first.text or climbing.said
        if met is not None:
            met.message, met.partial = found, AdapterAnswer(text=text, usage=climbing.usage)
            raise met
        raise NoMeta(found, text, usage=climbing.usage)
    rungs.note({"type": "rung", "rung": found.rung})
    return found


@dataclass(slots=True)
class _Climb:
    """One extraction, and its usage. Each rung returns a result, or the problem as a text."""

    adapter: Adapter
    context: AgentContext
    rungs: Fallbacks
    usage: dict[str, Any] = field(default_factory=dict)
    said: str = ""
    outside: AskFailed | None = None
    """Why a correction failed, if that is not about the answer."""

    def ask_first(self, question: AdapterQuestion) -> AdapterAnswer:
        """Ask in the earlier conversation; in a new one if it is lost or there is none."""
        try:
            answer = self._ask(question)
        except AskFailed as failure:
            if question.session is None or failure.kind != "no-session":
                raise
            answer = self._ask(replace(question, session=None, spent={}))
        if question.session not in (None, answer.session):
            # Harmless, since the prompt is whole in every visit.
            message = "the earlier conversation no longer exists; a new one was started"
            self.rungs.note({"type": "warning", "message": message})
        return answer

    def _ask(self, question: AdapterQuestion) -> AdapterAnswer:
        try:
            answer = self.adapter.ask(question)
        except AskFailed as failure:
            if failure.partial is not None:
                self._account(failure.partial)
            self.rungs.note({"type": "error", "kind": failure.kind, "message": failure.message})
            raise
        self._account(answer)
        self.said = self.said or answer.text
        text = answer.text if answer.structured is not None else drop_thoughts(answer.text)
        return replace(answer, text=text)

    def _account(self, answer: AdapterAnswer) -> None:
        self.usage = add_usage(self.usage, dict(answer.usage))
        for event in answer.trace:
            self.rungs.note(event)

    def look(self, answer: AdapterAnswer, *, first: AdapterAnswer) -> AgentResult | str:
        role = self.context.current_role
        suffix = "" if answer is first else "-corrected"
        problems: list[str] = []
        for rung, meta, content, problem in self._list_found(answer, first):
            if not (misfit := problem or find_misfit(meta, role.output_schema)):
                return self._result(meta, content, rung + suffix, first)
            problems.append(f"{role.output_file}: {misfit}" if rung == "file" else misfit)
        return problems[0]

    def _list_found(
        self, answer: AdapterAnswer, first: AdapterAnswer
    ) -> Iterator[tuple[str, Any, str, str]]:
        """Yield the rung, the meta, the content and the problem of each source that has any."""
        left = self.rungs.reported()
        if left is not None:
            yield "file", left[0], first.text, left[1]
        handed_in = self.rungs.submitted()
        if handed_in is not None:
            content = handed_in.get("content")
            said = content if isinstance(content, str) and content else first.text
            yield "submitted", handed_in.get("meta"), said, ""
        if answer.structured is not None:
            yield "native", answer.structured, first.text, ""
        try:
            extracted = extract_meta(answer.text, self.context.current_role.output_schema)
        except NoMeta as error:
            yield "", None, "", error.problem
        else:
            said = extracted.content if answer is first else first.text
            yield extracted.rung, extracted.meta, said, ""

    def _result(self, meta: Any, content: str, rung: str, first: AdapterAnswer) -> AgentResult:
        return AgentResult(
            meta, content, usage=self.usage or None, session=first.session, rung=rung
        )

    def correct(
        self, question: AdapterQuestion, first: AdapterAnswer, problem: str
    ) -> AgentResult | str:
        """Ask again in the same conversation, with the problem, until the fields fit."""
        spent = dict(question.spent) if first.session == question.session else {}
        for _ in range(self.rungs.most_corrections):
            if not self.adapter.resumes or first.session is None:
                break
            again = replace(
                question,
                prompt=build_correction(problem, self.context.current_role),
                session=first.session,
                spent=add_usage(spent, self.usage),
            )
            self.rungs.note({"type": "correction", "problem": problem})
            try:
                answer = self._ask(again)
            except AskFailed as failure:
                # A limit without an end uses up a retry: each of them pays for the answer again.
                if failure.kind in {"auth", "interrupted"} or "resetAt" in failure.facts:
                    self.outside = failure
                return f"{problem}; asked again: {failure.message}"
            if answer.session != first.session:
                # A new conversation knows nothing of the work; its fields would be made up.
                return f"{problem}; asked again, the agent had lost the conversation"
            found = self.look(answer, first=first)
            if not isinstance(found, str):
                return found
            problem = found
        return problem

    def extract(self, first: AdapterAnswer, problem: str) -> AgentResult | str:
        """Let the configured model, if there is one, read the agent's text without thoughts."""
        text = _blank_thoughts(first.text).strip()
        try:
            extractor = self.rungs.find_extractor() if text else None
            if extractor is None:
                return problem
            answer = extractor(turn_context.build_extract_context(self.context, text))
        except UwfError as failure:
            # A wrong setting of the extractor must not lose the agent's answer.
            if isinstance(failure, AskFailed) and failure.partial is not None:
                self._account(failure.partial)
            return f"{problem}; the extractor: {failure.message}"
        self._account(answer)
        if misfit := find_misfit(answer.structured, self.context.current_role.output_schema):
            return f"{problem}; the extractor's fields: {misfit}"
        return self._result(answer.structured, first.text, "extractor", first)


def describe_failure(failure: AskFailed | NoMeta) -> dict[str, Any]:
    """Return what the engine records about a failure besides its message."""
    if isinstance(failure, NoMeta):
        return {"kind": failure.code, "usage": dict(failure.usage)}
    usage = {} if failure.partial is None else dict(failure.partial.usage)
    reset = {name: at for name, at in failure.facts.items() if name == "resetAt"}
    return {"kind": failure.kind, "usage": usage, **reset}


def build_correction(problem: str, role: RoleView) -> str:
    """Return the prompt that names the *problem* and repeats how to answer."""
    problem = command_line.on_one_line(problem)[:1_000].rstrip(".")
    return (
        "Your work is done and kept; only the fields of your answer could not be read: "
        f"{problem}.\n\n"
        "Do not work on, and call no more tools. Answer once more with the fields, from what you "
        "know already; do not make up a value that you do not know.\n\n"
        f"# How to answer\n\n{build_answer_format(role)}\n"
    )
