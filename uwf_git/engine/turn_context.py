"""Turn context: what an agent may know, in the three stages of a step.

Each stage has all of the stage before it, and no stage has anything that ``uwf thread context``
would not print.
"""

import re
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import lru_cache
from types import NoneType
from typing import Any, get_args, get_origin

from uwf_git.engine.moderator import LazyList
from uwf_git.errors import Refused

# What a turn is given besides its prompt: files, and the try that it belongs to.


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file that the turn is given."""

    path: str
    """Below the work directory."""

    content: str = ""
    problem: str | None = None
    """Why there is no content; None: there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """The verdict that ended the last try."""

    role: str
    """Who rejected the work."""

    issues: tuple[str, ...] = ()
    suggestion: str = ""
    meta: Any = None
    content: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TryView:
    """The try that a turn belongs to, at a node whose work another agent verifies."""

    number: int
    """Which try it is, from 1."""

    of: int | None = None
    """How many there are; None: that is not known."""

    verifies: str | None = None
    """Of a verdict: the role whose work, the newest step, is to be judged."""

    work_input: Any = None
    """Of a verdict: what that work was about."""

    checked: str = ""
    """Of a verdict: what the checks of that work printed, which it passed."""

    rejected: Rejection | None = None
    """Of work: the verdict that rejected the last try; None if there was none."""


def _bad_context(path: str, problem: str) -> Refused:
    return Refused(
        f"the thread's context: {path} {problem}",
        code="bad-context",
        hint="are the agent and the engine of the same version? see `uwf --version`",
        path=path,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowView:
    """The workflow that the thread runs."""

    name: str
    hash: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleView:
    """The role of the turn, and what it has to produce."""

    name: str
    description: str
    system_prompt: str
    extract_prompt: str | None = None
    """How to fill the meta, in words; None if the schema says it all."""

    output_schema: dict[str, Any] | bool
    """The JSON Schema of the meta."""

    checks: tuple[str, ...] = ()
    """The commands that have to succeed before the answer is taken."""

    output_file: str | None = None
    """The path, below the work directory, at which the meta may be left as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How the thread began."""

    prompt: str
    hash: str
    timestamp: int
    """Milliseconds since 1970."""

    initial_state: dict[str, Any] = field(default_factory=dict)

    depth: int = 0
    """How deep the thread is nested: 0, or one deeper than its parent thread."""

    parent_thread: str | None = None
    """The thread whose agent started this one, or that split into it and other branches."""

    entry: str | None = None
    """The place of the workflow at which a branch begins and ends; None: it is no branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchStep:
    """What the last agent of a branch said, or the agent whose work it judged."""

    role: str
    meta: Any
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(BranchStep):
    """One turn that was taken."""

    agent: str
    hash: str
    timestamp: int
    """Milliseconds since 1970."""

    session: str | None = None
    """The name under which its tool can continue that conversation, if the thread still can."""

    usage: dict[str, Any] = field(default_factory=dict)
    """The usage that it reported."""

    branches: tuple[BranchStep, ...] = ()
    """Of a join: what its branches said last, and theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastError:
    """Why the previous attempt failed."""

    kind: str
    message: str
    output: str = ""
    """The end of what the check printed that refused the answer; kind ``check`` only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """The node of a flow that a turn plays."""

    label: str
    """Its ``id``, ``name`` or ``agentId`` in the file."""

    at: str
    """Its place, with the passes of the loops around it: ``0.3/1``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeratorContext:
    """What routing sees: the prompt and the steps."""

    thread_id: str
    start: Start
    steps: Sequence[Step]
    """Oldest first. Each is read when it is accessed, the newest without the rest.

    `len`, negative indexes and slices read nothing else; a loop from the oldest reads them all.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContext(ModeratorContext):
    """What an agent sees: routing's view, and its own part."""

    workflow: WorkflowView
    current_role: RoleView
    head: str
    """The name of the newest node."""

    depth: int
    """The number of steps of the thread; a branch has those before it in ``steps`` as well."""

    visit: int
    """Which turn of the role this is, from 1."""

    attempt: int
    """Which attempt at this turn this is, from 1."""

    last_error: LastError | None = None
    state: dict[str, Any] = field(default_factory=dict)
    hint: str | None = None
    """A hint from a person who watches the thread."""

    workdir: str | None = None
    """Where the agent runs; None if it is not known on this machine."""

    input: Any = None
    """What this turn is about: the node's ``input``, filled. None if it has none."""

    node: NodeView | None = None
    """The node of the flow; None in a graph."""

    iteration: int | None = None
    """The passes done of the innermost loop around it, 0 in the first; None in a graph."""

    input_files: tuple[InputFile, ...] = ()
    """The files that the role names, as they are now."""
    tried: TryView | None = None
    """The try that it belongs to; None if nobody verifies the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractContext(AgentContext):
    """What extraction sees: the agent's view, and the agent's answer."""

    agent_content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verified:
    role: str
    input: Any = None
    checked: str = ""


_KEYS = {"thread_id": "thread", "current_role": "role", "tried": "try"}
_NEXT_WORD = re.compile("_([a-z])")
_PLAIN = {str: "a string", int: "a whole number", dict: "an object"}


def build_extract_context(context: AgentContext, agent_content: str) -> ExtractContext:
    """Add the agent's answer to its context."""
    known = {each.name: getattr(context, each.name) for each in fields(AgentContext)}
    return ExtractContext(**known, agent_content=agent_content)


def parse_context(document: Any) -> AgentContext:
    """Parse the document that ``uwf thread context`` prints. Unknown keys are ignored.

    Steps that are a lazy list are read, and parsed, when they are accessed.
    """
    context: AgentContext = _parse(AgentContext, document, "")
    return context


def _parse(kind: Any, document: Any, path: str) -> Any:
    """Return *document* as a *kind*: its keys are the names of the fields, as JSON has them."""
    if not isinstance(document, dict):
        raise _bad_context(path or "the document", "is not an object")
    values: dict[str, Any] = {}
    for name, key, wanted, is_optional in _list_fields(kind):
        value = document.get(key)
        if value is None and is_optional:
            continue
        if type(value) is not wanted or value is None:
            at = f"{path}.{key}" if path else key
            if key not in document:
                raise _bad_context(at, "is missing")
            value = _read(wanted, value, at)
        values[name] = value
    return kind(**values)


@lru_cache
def _list_fields(kind: Any) -> tuple[tuple[str, str, Any, bool], ...]:
    """Return name, key and type of each field, and whether it may be left out."""
    return tuple(
        (
            each.name,
            _KEYS.get(each.name) or _NEXT_WORD.sub(lambda found: found[1].upper(), each.name),
            _strip(each.type),
            each.default is not MISSING or each.default_factory is not MISSING,
        )
        for each in fields(kind)
    )


def _strip(kind: Any) -> Any:
    """Return the type of a field without None, and without the types of a dict's members."""
    options = [each for each in get_args(kind) if each is not NoneType]
    if get_origin(kind) is dict:
        return dict
    is_optional = NoneType in get_args(kind) and len(options) == 1
    return _strip(options[0]) if is_optional else kind


def _read(wanted: Any, value: Any, at: str) -> Any:
    if wanted in _PLAIN and (not isinstance(value, wanted) or isinstance(value, bool)):
        raise _bad_context(at, f"is not {_PLAIN[wanted]}")
    if is_dataclass(wanted):
        part = _flat_try(value) if wanted is TryView else value
        return _parse(wanted, part, at)
    if get_origin(wanted) in (tuple, Sequence):
        if not isinstance(value, list):
            raise _bad_context(at, "is not a list")
        kind = get_args(wanted)[0]
        if isinstance(value, LazyList):
            return value.mapped(lambda each: _read(kind, each, "a step"))
        return tuple(_read(kind, each, f"{at}[{n}]") for n, each in enumerate(value))
    if bool in get_args(wanted) and not isinstance(value, dict | bool):
        raise _bad_context(at, "is not a JSON Schema")
    return value


def _flat_try(document: Any) -> Any:
    verified = document.get("verifies") if isinstance(document, dict) else None
    if verified is None:
        return document
    part = _parse(_Verified, verified, "try.verifies")
    return {**document, "verifies": part.role, "workInput": part.input, "checked": part.checked}
