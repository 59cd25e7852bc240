"""Turn context: what an agent may know, in the three stages of a step.

Each stage has all of the stage before it, and no stage has anything that ``uwf thread context``
would not print.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from uwf_git.engine.lazy_list import LazyList
from uwf_git.errors import Refused

# What a turn is given besides its prompt: files, and the try that it belongs to.


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file that the turn is given."""

    path: str
    """Below the work directory."""

    content: str
    problem: str | None = None
    """Why there is no content; None: there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """The verdict that ended the last try."""

    role: str
    """Who rejected the work."""

    issues: tuple[str, ...]
    suggestion: str
    meta: Any
    content: str


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


class BadContext(Refused):
    """The document is not what `uwf thread context` prints."""

    code = "bad-context"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"the thread's context: {path} {problem}",
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
    extract_prompt: str | None
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

    initial_state: dict[str, Any]

    depth: int = 0
    """How deep the thread is nested: 0, or one more than that of its parent thread."""

    parent_thread: str | None = None
    """The thread whose agent started this one, or that split into it and other branches."""

    entry: str | None = None
    """The place of the workflow at which a branch begins and ends; None: it is no branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One turn that was taken."""

    role: str
    meta: Any
    content: str
    agent: str
    hash: str
    timestamp: int
    """Milliseconds since 1970."""

    session: str | None = None
    """The name under which its tool can continue that conversation."""

    usage: dict[str, Any] = field(default_factory=dict)
    """The usage that it reported."""


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

    last_error: LastError | None
    state: dict[str, Any]
    hint: str | None
    """A hint from a person who watches the thread."""

    workdir: str | None
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


def build_extract_context(context: AgentContext, agent_content: str) -> ExtractContext:
    """Add the agent's answer to its context."""
    known = {each.name: getattr(context, each.name) for each in fields(AgentContext)}
    return ExtractContext(**known, agent_content=agent_content)


def parse_context(document: Any) -> AgentContext:
    """Parse the document that ``uwf thread context`` prints. Unknown keys are ignored.

    Steps that are a lazy list are read, and parsed, when they are accessed.

    Raises:
        BadContext: something is missing, or of the wrong kind; it says what.
    """
    root = _Fields(document, "")
    error = root.find_object("lastError")
    return AgentContext(
        thread_id=root.text("thread"),
        start=_parse_start(root.part("start")),
        steps=_parse_steps(root),
        workflow=_parse_workflow(root.part("workflow")),
        current_role=_parse_role(root.part("role")),
        head=root.text("head"),
        depth=root.number("depth"),
        visit=root.number("visit"),
        attempt=root.number("attempt"),
        last_error=None if error is None else _parse_error(_Fields(error, "lastError")),
        state=root.find_object("state") or {},
        hint=root.find_text("hint"),
        workdir=root.find_text("workdir"),
        input=root.find("input"),
        node=None if root.find("node") is None else _parse_node(root.part("node")),
        iteration=root.find_number("iteration"),
        input_files=_parse_files(root),
        tried=None if root.find("try") is None else _parse_try(root.part("try")),
    )


def _parse_files(root: "_Fields") -> tuple[InputFile, ...]:
    parts = root.parts("inputFiles") if root.find("inputFiles") else ()
    return tuple(
        InputFile(
            path=part.text("path"),
            content=part.find_text("content") or "",
            problem=part.find_text("problem"),
        )
        for part in parts
    )


def _parse_try(part: "_Fields") -> TryView:
    verified = None if part.find("verifies") is None else part.part("verifies")
    return TryView(
        number=part.number("number"),
        of=part.find_number("of"),
        verifies=None if verified is None else verified.text("role"),
        work_input=None if verified is None else verified.find("input"),
        checked="" if verified is None else verified.find_text("checked") or "",
        rejected=None if part.find("rejected") is None else _parse_rejection(part.part("rejected")),
    )


def _parse_rejection(part: "_Fields") -> Rejection:
    issues = part.find("issues") or ()
    return Rejection(
        role=part.text("role"),
        issues=tuple(str(each) for each in issues),
        suggestion=part.find_text("suggestion") or "",
        meta=part.find("meta"),
        content=part.find_text("content") or "",
    )


def _parse_node(part: "_Fields") -> NodeView:
    return NodeView(label=part.text("label"), at=part.text("at"))


def _parse_workflow(part: "_Fields") -> WorkflowView:
    return WorkflowView(
        name=part.text("name"), hash=part.text("hash"), description=part.text("description")
    )


def _parse_role(part: "_Fields") -> RoleView:
    return RoleView(
        name=part.text("name"),
        description=part.text("description"),
        system_prompt=part.text("systemPrompt"),
        extract_prompt=part.find_text("extractPrompt"),
        output_schema=part.schema("outputSchema"),
        checks=part.find_texts("checks"),
        output_file=part.find_text("outputFile"),
    )


def _parse_start(part: "_Fields") -> Start:
    return Start(
        prompt=part.text("prompt"),
        hash=part.text("hash"),
        timestamp=part.number("timestamp"),
        initial_state=part.find_object("initialState") or {},
        depth=part.find_number("depth") or 0,
        parent_thread=part.find_text("parentThread"),
        entry=part.find_text("entry"),
    )


def _parse_steps(root: "_Fields") -> Sequence[Step]:
    steps = root.anything("steps")
    if isinstance(steps, LazyList):
        return steps.mapped(lambda step: _parse_step(_Fields(step, "a step")))
    return tuple(map(_parse_step, root.parts("steps")))


def _parse_step(part: "_Fields") -> Step:
    return Step(
        role=part.text("role"),
        meta=part.anything("meta"),
        content=part.text("content"),
        agent=part.text("agent"),
        hash=part.text("hash"),
        timestamp=part.number("timestamp"),
        session=part.find_text("session"),
        usage=part.find_object("usage") or {},
    )


def _parse_error(part: "_Fields") -> LastError:
    return LastError(
        kind=part.text("kind"),
        message=part.text("message"),
        output=part.find_text("output") or "",
    )


class _Fields:
    """An object of the document, and its path."""

    def __init__(self, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise BadContext(path or "the document", "is not an object")
        self._value: dict[str, Any] = value
        self._path = path

    def anything(self, name: str) -> Any:
        if name not in self._value:
            raise BadContext(self._at(name), "is missing")
        return self._value[name]

    def find(self, name: str) -> Any:
        return self._value.get(name)

    def text(self, name: str) -> str:
        value = self.anything(name)
        if not isinstance(value, str):
            raise BadContext(self._at(name), "is not a string")
        return value

    def find_text(self, name: str) -> str | None:
        return None if self._value.get(name) is None else self.text(name)

    def number(self, name: str) -> int:
        value = self.anything(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise BadContext(self._at(name), "is not a whole number")
        return value

    def find_number(self, name: str) -> int | None:
        return None if self._value.get(name) is None else self.number(name)

    def find_object(self, name: str) -> dict[str, Any] | None:
        value = self._value.get(name)
        if value is not None and not isinstance(value, dict):
            raise BadContext(self._at(name), "is not an object")
        return value

    def find_texts(self, name: str) -> tuple[str, ...]:
        values = self._value.get(name) or []
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            raise BadContext(self._at(name), "is not a list of texts")
        return tuple(values)

    def schema(self, name: str) -> dict[str, Any] | bool:
        value = self.anything(name)
        if not isinstance(value, dict | bool):
            raise BadContext(self._at(name), "is not a JSON Schema")
        return value

    def part(self, name: str) -> "_Fields":
        return _Fields(self.anything(name), self._at(name))

    def parts(self, name: str) -> "list[_Fields]":
        values = self.anything(name)
        if not isinstance(values, list):
            raise BadContext(self._at(name), "is not a list")
        return [_Fields(value, f"{self._at(name)}[{n}]") for n, value in enumerate(values)]

    def _at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name
