"""Workflow definitions as values, and what the file of a flow needs from outside."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from uwf_git.errors import Problem, Refused
from uwf_git.model.builtin import FLOWS, ROLE, WORKFLOW, find_reference
from uwf_git.model.flow import MAX_NESTING, SPLITTING, parent, parse_flow
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node, render_path
from uwf_git.model.text import cut
from uwf_git.model.workflow import Graph, without_none
from uwf_git.model.yaml_reader import YamlDocument

# Findings: the problems of a workflow file, collected up to a limit while the file is read.

DocumentPath = tuple[str | int, ...]

_BARE_KEY = re.compile(r"[\w$-]+")
_STEP_INTO_LIST = re.compile(r"\[([0-9]+)\]\.?")
_MOST_CHOICES = 12

_MOST_PROBLEMS = 200
# A document can hold many names; the search for the nearest must stay cheap.
_MOST_CANDIDATES = 200
_LONGEST_WORD = 100


class InvalidWorkflow(Refused):
    """The file is YAML, but not a workflow."""

    code = "invalid-workflow"

    def __init__(self, problems: Sequence[Problem]) -> None:
        first = problems[0]
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems, the first"
        place = first.path or "the top"
        super().__init__(
            f"the workflow has {count} on line {first.line}"
            f"{'' if first.file is None else f' of {first.file}'} ({place}): {first.message}",
            problems=[problem.as_document() for problem in problems],
        )
        self.problems = tuple(problems)


class Findings:
    """The problems found in one document so far."""

    def __init__(self, document: YamlDocument) -> None:
        self._document = document
        self._problems: list[Problem] = []
        self._warnings: list[Problem] = []

    def add(self, path: DocumentPath, message: str) -> None:
        """Add a problem: *message* is true of the value at *path*, which may be missing."""
        file, line = self._place(path)
        self._add(Problem(dotted(path), message, line, file))

    def warn(self, path: DocumentPath, message: str) -> None:
        """Add a warning about the value at *path*; one too many is left out."""
        file, line = self._place(path)
        warning = Problem(dotted(path), message, line, file)
        if self.has_room and warning not in self._warnings:
            self._warnings.append(warning)

    @property
    def has_room(self) -> bool:
        """Whether another warning would be told: finding what was meant takes a while."""
        return len(self._warnings) < _MOST_PROBLEMS

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """All warnings, by line; warnings of included files last."""
        return tuple(_by_line(self._warnings))

    def add_below(self, path: DocumentPath, problem: Problem) -> None:
        """Add a *problem* that a checker found in the value at *path*, relative to that value."""
        value = self._document.value
        for part in path:
            value = value[part]
        inner = problem.path
        joint = "." if inner and not inner.startswith("[") else ""
        file, line = self._place(path + _locate(value, inner))
        self._add(Problem(f"{dotted(path)}{joint}{inner}", problem.message, line, file))

    def raise_if_any(self) -> None:
        """Raise InvalidWorkflow with all problems, by line; problems of included files last."""
        if self._problems:
            raise InvalidWorkflow(_by_line(self._problems))

    def read_fields(
        self, path: DocumentPath, value: Any, known: Sequence[str]
    ) -> dict[str, Any] | None:
        """Return the fields with *known* keys and a value; None and a finding: no mapping."""
        if not isinstance(value, dict):
            self.add(path, f"must be a mapping with {_choices(known)}, not {yaml_kind(value)}")
            return None
        for key in value:
            if key not in known:
                self.add((*path, key), f"unknown key {shown(key)}; {suggestion(key, known)}")
        return {key: value[key] for key in known if value.get(key) is not None}

    def read_list(self, path: DocumentPath, value: Any, of: str) -> list[Any]:
        """Return *value* if it is a list with items, which are *of*; else [], and add a finding."""
        if isinstance(value, list) and value:
            return value
        told = "an empty list" if isinstance(value, list) else yaml_kind(value)
        self.add(path, f"must be a list of {of}, not {told}")
        return []

    def is_one_of(self, path: DocumentPath, value: Any, choices: tuple[str, ...]) -> bool:
        """Check that *value* is one of *choices*; else add a finding."""
        if isinstance(value, str) and value in choices:
            return True
        told = shown(value) if isinstance(value, str) else yaml_kind(value)
        either = " or ".join(filter(None, (", ".join(choices[:-1]), choices[-1])))
        self.add(path, f"must be {either}, not {told}")
        return False

    def read_text(self, path: DocumentPath, value: Any) -> str | None:
        """Return *value* if it is text; else None, and add a finding."""
        if isinstance(value, str):
            return value
        quoting = "; write it in quotes" if isinstance(value, bool | int | float) else ""
        self.add(path, f"must be text, not {yaml_kind(value)}{quoting}")
        return None

    def read_optional_text(
        self, path: DocumentPath, fields: dict[str, Any], key: str
    ) -> str | None:
        return self.read_text((*path, key), fields[key]) if key in fields else None

    def _add(self, problem: Problem) -> None:
        self._problems.append(problem)
        if len(self._problems) == _MOST_PROBLEMS:
            self.raise_if_any()

    def _place(self, path: DocumentPath) -> tuple[str | None, int | None]:
        # Something missing has no line; its parent does.
        while (place := self._document.place(path)) is None and path:
            path = path[:-1]
        return place or (None, None)


def _by_line(problems: Sequence[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda each: (each.file or "", each.line or 0))


def yaml_kind(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list) else "a mapping"


def find_nearest(word: str, known: Iterable[str]) -> str | None:
    by_folded = {_folded(candidate): candidate for candidate in islice(known, _MOST_CANDIDATES)}
    nearest = difflib.get_close_matches(_folded(word), by_folded, n=1)
    return by_folded[nearest[0]] if nearest else None


def suggestion(word: str, known: Sequence[str]) -> str:
    """Suggest what *word* probably means, or list the choices."""
    nearest = find_nearest(word, known)
    return f"did you mean {shown(nearest)}?" if nearest else f"there is {_choices(known)}"


def unknown_name(name: str, known: Sequence[str]) -> str:
    known = (*known, "true", "false", "null")
    return f"no name {shown(name)} is known here; {suggestion(name, known)}"


def dotted(path: DocumentPath) -> str:
    """Write *path* as people read it: ``moderator.graph[2].to``; the root is empty."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _BARE_KEY.fullmatch(part) and len(part) <= _LONGEST_WORD:
            text += f".{part}" if text else part
        else:
            text += f"[{shown(part)}]"
    return text


def shown(word: str) -> str:
    """Quote *word* for a message, in which it may not be longer than a name can be."""
    return repr(cut(word, _LONGEST_WORD))


def _choices(known: Sequence[str]) -> str:
    choices = ", ".join(word[:_LONGEST_WORD] for word in known[:_MOST_CHOICES])
    return f"{choices}, …" if len(known) > _MOST_CHOICES else choices


def _folded(word: str) -> str:
    return word[:_LONGEST_WORD].casefold().replace("_", "").replace("-", "")


def _locate(value: Any, inner: str) -> DocumentPath:
    """Find as much of *inner* as leads into *value*."""
    found: DocumentPath = ()
    while inner:
        part, inner = _first_part(value, inner)
        if part is None:
            break
        found = (*found, part)
        value = value[part]
    return found


def _first_part(value: Any, inner: str) -> tuple[str | int | None, str]:
    if isinstance(value, list):
        step = _STEP_INTO_LIST.match(inner)
        if step and int(step[1]) < len(value):
            return int(step[1]), inner[step.end() :]
    if isinstance(value, dict):
        for key in value:
            told = render_path([key])
            if inner == told or inner.startswith((f"{told}.", f"{told}[")):
                return key, inner[len(told) :].removeprefix(".")
    return None, ""


# Workflow definitions: the parts of a workflow, as values.
#
# One from ``read_definition`` is sound: every role can be reached, and every role can reach the
# end.


class AgentSpec(NamedTuple):
    """How to run an agent. None means not given, and is not stored."""

    command: str
    """Words as a shell would split them; no shell runs them."""

    protocol: str | None = None
    """``positional`` (seed 000) or ``flags`` (seed 001)."""

    timeout: float | None = None
    """Seconds."""

    retries: int | None = None
    backoff: float | None = None
    """Seconds before the first retry; the wait grows by as much with each later one."""

    env: Mapping[str, str] | None = None
    """Plain settings by name, added to the inherited environment; never secrets."""

    def as_payload(self) -> dict[str, Any]:
        """Return the AgentConfig payload: only what is set, so that equal agents have one name."""
        return without_none(self._asdict() | {"env": self.env and dict(self.env)})


class RoleDefinition(NamedTuple):
    """One role: its prompt and the output that it must produce."""

    name: str
    description: str
    system_prompt: str
    extract_prompt: str | None
    """How to get the meta out of the agent's answer; None: by the schema alone."""

    output_schema: dict[str, Any] | bool

    workflow: NodeHash | None = None
    """The workflow that plays it; None: an agent does."""

    used: Sequence[Node] = ()
    """All nodes that this workflow reaches, itself among them."""

    checks: tuple[str, ...] = ()
    """The commands that have to succeed before an answer is recorded."""

    output_file: str | None = None
    """A template for the path at which its agent may leave its meta."""

    input_files: tuple[str, ...] = ()
    """Templates for paths, or patterns, of the files that its agent is given."""


class FlowDefinition(NamedTuple):
    nodes: Mapping[str, Mapping[str, Any]]
    """The nodes of the Flow payload, by place."""

    language: str | None
    """The language of conditions and templates, if the file says it."""

    used: Sequence[Node] = ()
    """The workflows that it runs, each with all nodes that it reaches."""


class Definition(NamedTuple):
    """One workflow: a graph or a flow."""

    name: str
    description: str
    roles: Mapping[str, RoleDefinition]
    graph: Graph
    """Empty if it is a flow."""

    default_agent: AgentSpec | None
    """The agent of a role without a binding; None: the user's configuration decides."""

    agent_overrides: Mapping[str, AgentSpec]
    """By role."""

    initial_state: dict[str, Any] | None
    config: dict[str, Any] | None = None
    """The limits that a thread begins with unless it has its own, and what its events contain."""

    flow: FlowDefinition | None = None
    """None: it is a graph."""

    warnings: tuple[Problem, ...] = ()


# What the file of a flow needs from outside: its file's name, expressions, other workflows.


TABLE_NAMES = ("role", "meta", "depth", "history", "prompt", "state", "iteration", "startTime")
"""What a condition of a table may read."""

FLOW_NAMES = ("state", "iteration", "prompt", "depth")
"""What every text of a flow may read; within maps their items too."""


class FlowText(NamedTuple):
    kind: Literal["expression", "template"]
    text: str
    language: str
    """``javascript`` or ``jsonata``."""

    names: tuple[str, ...] = ()
    """The items of the maps around it, which it may name besides ``state`` and the like."""


def table_text(condition: str) -> FlowText:
    return FlowText("expression", condition, "jsonata")


CheckText = Callable[[FlowText], str | None]
"""Return what is wrong with a text, or None."""

ListReads = Callable[[FlowText], Sequence[Sequence[str]]]
"""List the names that a text reads, each with the member that it reads of it."""


class UsedWorkflow(NamedTuple):
    hash: NodeHash
    nodes: Sequence[Node]
    """All nodes that it reaches, itself among them."""

    def list_names(self) -> list[str]:
        return [str(node.payload["name"]) for node in self.nodes if node.type == WORKFLOW]

    def list_files(self) -> list[str]:
        """List the fixed paths of its roles' ``outputFile``; none if branches in it work apart."""
        tables = [node.payload["nodes"] for node in self.nodes if node.type in FLOWS]
        if any("isolation" in fields for table in tables for fields in table.values()):
            return []
        files = [node.payload.get("outputFile") for node in self.nodes if node.type == ROLE]
        return [file for file in files if file is not None and "${" not in file]

    def nesting(self) -> int:
        """Return how many threads may lie in one another while it runs, besides its own."""
        nodes = {node.hash: node for node in self.nodes}
        known: dict[NodeHash, int] = {}

        def of_workflow(name: NodeHash | None, level: int) -> int:
            if name is None or name not in nodes or level > MAX_NESTING:
                # Below so many it is too deep already.
                return 0
            if name not in known:
                known[name] = of_parts(nodes[name], level + 1)
            return known[name]

        def of_parts(workflow: Node, level: int) -> int:
            roles = [
                find_reference(nodes[target].payload.get("workflow"))
                for ref in workflow.payload["roles"].values()
                if (target := find_reference(ref)) is not None and target in nodes
            ]
            deepest = max((1 + of_workflow(inner, level) for inner in roles if inner), default=0)
            flow = find_reference(workflow.payload.get("flow"))
            if flow is None or flow not in nodes or nodes[flow].type not in FLOWS:
                return deepest
            inside = _nesting_of_flow(nodes[flow], lambda name: of_workflow(name, level))
            return max(deepest, inside)

        return of_workflow(self.hash, 0)


FindUsed = Callable[[str], "UsedWorkflow | str"]
"""Find the workflow that a flow names; a text says why there is none."""


def find_contained(find_used: FindUsed, named: str, *, by: str) -> UsedWorkflow | str:
    """Return the workflow *named*, which the workflow *by* is to contain, or why it cannot."""
    if named == by:
        return f"workflow {named} cannot contain itself"
    found = find_used(named)
    if isinstance(found, str):
        return found
    if by in found.list_names():
        return f"workflow {by} cannot contain itself: {named} contains it"
    try:
        found.nesting()
    except ValueError as error:
        return f"workflow {named} cannot be read: {error}"
    return found


def not_checked(_text: FlowText) -> str | None:
    """Return None: nothing is known to be wrong with a text."""
    return None


class Surroundings(NamedTuple):
    """Where a file lies, and who checks what it refers to."""

    name: str | None = None
    """The name of a workflow whose file is a bare container: the name of the file."""

    check_text: CheckText = not_checked
    list_reads: ListReads = lambda _text: ()
    find_used: FindUsed = lambda _name: "no other workflow is known here"
    used: Sequence[UsedWorkflow] = ()
    """The workflows that run already in the flow to which the file adds nodes."""


def _nesting_of_flow(node: Node, of_workflow: Callable[[NodeHash | None], int]) -> int:
    flow = parse_flow(node.payload)
    deepest: dict[str, int] = {}
    for place in sorted(flow.nodes, key=lambda each: each.count("/")):
        here = flow.nodes[place]
        up = parent(place)
        deepest[place] = (deepest[up] if up else 0) + (here.kind in SPLITTING)
    inner = [
        deepest[place] + of_workflow(each.workflow)
        for place, each in flow.nodes.items()
        if each.kind == "workflow"
    ]
    return max([0, *deepest.values(), *inner])
