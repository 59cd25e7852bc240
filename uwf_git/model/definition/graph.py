"""The moderator's graph in a workflow file, and whether it leads to every role and to the end."""

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

from uwf_git.model.builtin import reference
from uwf_git.model.definition.definition import (
    TABLE_NAMES,
    DocumentPath,
    Findings,
    FlowDefinition,
    ListReads,
    RoleDefinition,
    Surroundings,
    UsedWorkflow,
    find_contained,
    find_nearest,
    shown,
    suggestion,
    table_text,
    unknown_name,
    yaml_kind,
)
from uwf_git.model.definition.flow_fields import KEYS, FieldReader, FlowChecks, kinds_with
from uwf_git.model.definition.roles import SENTINELS, list_fields
from uwf_git.model.flow import (
    KINDS,
    MAX_LEVELS,
    MAX_NESTING,
    MAX_NODES,
    ROOT,
    SPLITTING,
    Flow,
    level,
    read_table,
)
from uwf_git.model.node import Node
from uwf_git.model.workflow import END, START, Transition

# Containers in a workflow file: from ``root``, or a bare container, to the table of a flow.

LANGUAGES = ("javascript", "jsonata")
_NODES = "containers and agents"


class FlowFile(NamedTuple):
    name: str

    language: str | None
    roles: Mapping[str, RoleDefinition]
    surroundings: Surroundings
    has_words: bool = True
    """Whether it describes roles, so that each agent should be one of them."""

    state: Mapping[str, Any] | None = None
    """What the state begins as."""


class _Around(NamedTuple):
    names: tuple[str, ...] = ()
    """The items of the maps and loops."""

    nesting: int = 0
    """How many threads lie in one another here."""


def read_flow(
    findings: Findings, path: DocumentPath, value: Any, file: FlowFile
) -> tuple[FlowDefinition, dict[str, RoleDefinition]]:
    """Read the container *value* at *path*, the root of a workflow.

    Return the flow, and a role for each agent whose role the file lacks: without words, and with
    any meta.
    """
    roles, language = file.roles, file.language
    reader = _FlowReader(findings, file.name, language or LANGUAGES[0], file.surroundings)
    reader.read(path, value, ROOT, _Around())
    flow = reader.build(language or LANGUAGES[0])
    checks = FlowChecks(findings, flow, roles, reader.used.values())
    checks.warn(reader.paths)
    checks.warn_of_names(reader.texts, file.surroundings.list_reads, file.state or ())
    checks.check_files(reader.paths)
    return FlowDefinition(reader.nodes, language, reader.list_used()), _build_roles(flow, roles)


def read_added_nodes(
    findings: Findings, path: DocumentPath, value: Any, *, file: FlowFile, to: tuple[Flow, str]
) -> tuple[FlowDefinition, dict[str, RoleDefinition]]:
    """Read the list of nodes *value* at *path*, which go after the last node of a list of a flow.

    Return the whole flow, and roles as ``read_flow`` does. *to* is the flow, and the place of a
    container in it; "" is the top, after the root. *file* has the known roles.
    """
    flow, container = to
    reader = _FlowReader(findings, file.name, flow.language, file.surroundings)
    reader.know(flow)
    first = len(flow.children(container)) if container else len(list(flow.list_from(ROOT)))
    around = reader.find_around(container)
    for index, item in enumerate(findings.read_list(path, value, _NODES)):
        place = f"{container}/{first + index}".removeprefix("/")
        reader.read((*path, index), item, place, around)
    whole = reader.build(flow.language)
    everywhere = dict.fromkeys(whole.nodes, path) | reader.paths
    used = reader.used.values()
    FlowChecks(findings, whole, file.roles, used).check_files(everywhere)
    described = FlowChecks(findings, whole, file.roles if file.has_words else {}, used)
    described.warn(reader.paths)
    if container and whole.nodes[container].kind == "parallel":
        described.warn_of_branches(path, whole.nodes[container])
    added = FlowDefinition(reader.nodes, file.language, reader.list_used())
    return added, _build_roles(whole, file.roles)


def _build_roles(flow: Flow, roles: Container[str]) -> dict[str, RoleDefinition]:
    """Return roles without words for the agents that are none of *roles*."""
    return {
        agent: RoleDefinition(agent, "", "", None, output_schema=True)
        for agent in flow.roles
        if agent not in roles
    }


class _FlowReader:
    def __init__(
        self, findings: Findings, name: str, language: str, surroundings: Surroundings
    ) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.paths: dict[str, DocumentPath] = {}
        self.used: dict[str, UsedWorkflow] = {each.hash: each for each in surroundings.used}
        self._findings = findings
        self._name = name
        self._find_used = surroundings.find_used
        self._fields = FieldReader(findings, language, surroundings.check_text)
        self.texts = self._fields.texts
        self._ids: dict[str, str] = {}

    def know(self, flow: Flow) -> None:
        for place, node in flow.nodes.items():
            self.nodes[place] = {"type": node.kind, **node.fields}
            if "id" in node.fields:
                self._ids[str(node.fields["id"])] = place

    def build(self, language: str) -> Flow:
        return Flow(read_table(self.nodes), language)

    def list_used(self) -> list[Node]:
        """List the nodes of the workflows that the nodes here run, each once."""
        nodes = {node.hash: node for used in self.used.values() for node in used.nodes}
        return list(nodes.values())

    def find_around(self, place: str) -> _Around:
        """Return what the known container at *place* and those around it mean for a node in it."""
        parts = place.split("/") if place else []
        places = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
        return reduce(_enter, (self.nodes[each] for each in places), _Around())

    def read(self, path: DocumentPath, value: Any, place: str, around: _Around) -> None:
        if not self._has_room(path, place):
            return
        kind = self._read_kind(path, value)
        if kind is None:
            return
        fields = self._findings.read_fields(path, self._known(path, value, kind), KEYS[kind]) or {}
        self.paths[place] = path
        self.nodes[place] = {"type": kind}
        self.nodes[place] |= self._fields.read(path, kind, fields, names=around.names)
        self._check_id(path, place)
        around = self._inside(path, place, around)
        for key in ("nodes", "else"):
            if key in KEYS[kind]:
                self._read_list(path, key, fields.get(key), place, around)

    def _has_room(self, path: DocumentPath, place: str) -> bool:
        if level(place) > MAX_LEVELS:
            self._findings.add(path, f"is nested deeper than {MAX_LEVELS} levels")
            return False
        if len(self.nodes) >= MAX_NODES:
            if len(self.nodes) == MAX_NODES and "" not in self._ids:
                self._ids[""] = place
                self._findings.add(path, f"is one node too many: at most {MAX_NODES:,} are allowed")
            return False
        return True

    def _read_kind(self, path: DocumentPath, value: Any) -> str | None:
        if not isinstance(value, dict):
            self._findings.add(path, f"must be a container or an agent, not {yaml_kind(value)}")
            return None
        kind = value.get("type")
        if kind is None:
            self._findings.add(path, f"'type' is missing: one of {', '.join(KINDS)}")
            return None
        if not isinstance(kind, str) or kind not in KINDS:
            told = shown(kind) if isinstance(kind, str) else yaml_kind(kind)
            message = f"no type is {told}; {suggestion(str(kind), KINDS)}"
            self._findings.add((*path, "type"), message)
            return None
        return kind

    def _known(self, path: DocumentPath, value: dict[str, Any], kind: str) -> dict[str, Any]:
        """Return *value* without the keys that only other types have, which are findings."""
        kept: dict[str, Any] = {}
        for key, item in value.items():
            others = kinds_with(key)
            if others and kind not in others:
                only = ", ".join(others)
                self._findings.add((*path, key), f"{key!r} is not for {kind}, but for {only}")
            else:
                kept[key] = item
        return kept

    def _check_id(self, path: DocumentPath, place: str) -> None:
        named = self.nodes[place].get("id")
        if named is None:
            return
        if named in self._ids:
            self._findings.add((*path, "id"), f"a second node with the id {shown(named)}")
        self._ids[named] = place

    def _inside(self, path: DocumentPath, place: str, around: _Around) -> _Around:
        inside = _enter(around, self.nodes[place])
        nesting = inside.nesting + (self._bind(path, place) if "use" in self.nodes[place] else 0)
        if nesting > MAX_NESTING and around.nesting <= MAX_NESTING:
            self._findings.add(
                path, f"{nesting} threads would lie in one another; at most {MAX_NESTING}"
            )
        return inside

    def _bind(self, path: DocumentPath, place: str) -> int:
        """Bind ``use`` to a stored workflow, and return how deep its threads nest."""
        fields = self.nodes[place]
        named = fields["use"]
        found = self.used.get(named) or find_contained(self._find_used, named, by=self._name)
        if isinstance(found, str):
            self._findings.add((*path, "use"), found)
            return 0
        self.used[named] = found
        fields["workflow"] = reference(found.hash)
        return found.nesting()

    def _read_list(
        self, path: DocumentPath, key: str, value: Any, place: str, around: _Around
    ) -> None:
        if value is None:
            if key == "nodes":
                self._findings.add(path, "'nodes' is missing: a list of what it runs")
            return
        path = (*path, key)
        mark = "e" if key == "else" else ""
        for index, item in enumerate(self._findings.read_list(path, value, _NODES)):
            self.read((*path, index), item, f"{place}/{mark}{index}", around)


def _enter(around: _Around, fields: Mapping[str, Any]) -> _Around:
    """Return what is around the nodes in a container with *fields*."""
    kind, names = fields["type"], around.names
    if kind == "map" or (kind == "loop" and "over" in fields):
        names = (*names, str(fields.get("as", "item")))
    return _Around(names, around.nesting + (kind in SPLITTING))


def read_language(findings: Findings, fields: Mapping[str, Any]) -> str | None:
    """Read ``language``, which stands beside ``root``."""
    value = fields.get("language")
    is_right = value is None or findings.is_one_of(("language",), value, LANGUAGES)
    return value if is_right else None


# The moderator's graph in a workflow file: entries (seed 000) or a flat list (seed 001).
#
# The result has only role names, ``$START`` and ``$END``; check_routes checks where it leads.

CheckCondition = Callable[[str], str | None]

_CONDITION_KEYS = ("condition", "when")
_HISTORY = re.compile(
    r"""\[\s*role\s*=\s*["']([^"']+)["']\s*\](?:\[[^\]]*\])?\.meta\.([A-Za-z_]\w*)"""
)
"""A member of the meta of the steps of another role, or of one of these steps."""

_EMPTY = "the condition is empty; leave it out if it always holds"
_NO_MODERATOR = (
    "a workflow needs a moderator: a list of transitions, the first from $START; or a root: a "
    "container"
)


@dataclass(slots=True)
class GraphReading:
    """A graph as far as it could be read, with the places of its entries."""

    path: DocumentPath

    entries: dict[str, list[Transition]] = field(default_factory=dict)
    places: dict[str, DocumentPath] = field(default_factory=dict)
    """The place of the first entry of each name."""

    is_understood: bool = True
    """True if every name could be read, so that its routes can be checked."""

    ways: dict[str, list[DocumentPath]] = field(default_factory=dict)


def read_graph(
    findings: Findings,
    value: Any,
    *,
    roles: Sequence[str],
    check_condition: CheckCondition,
    path: DocumentPath = ("moderator",),
) -> GraphReading:
    """Read the graph under ``moderator``, or at *path*, in either spelling."""
    if isinstance(value, dict):
        if "$ref" in value:
            findings.add(path, "a file cannot refer to the store; write the graph here")
            return GraphReading(path, is_understood=False)
        fields = findings.read_fields(path, value, ("graph",)) or {}
        path, value = (*path, "graph"), fields.get("graph")
    reader = _GraphReader(findings, path, roles, check_condition)
    if isinstance(value, list) and value:
        reader.read_list(value)
    else:
        told = f"must be a list of transitions, not {yaml_kind(value)}"
        findings.add(path, _NO_MODERATOR if value is None or value == [] else told)
        reader.reading.is_understood = False
    return reader.reading


class _GraphReader:
    def __init__(
        self, findings: Findings, path: DocumentPath, roles: Sequence[str], check: CheckCondition
    ) -> None:
        self.reading = GraphReading(path)
        self._findings = findings
        self._roles = roles
        self._known = frozenset(roles)
        self._check_condition = check

    def read_list(self, entries: list[Any]) -> None:
        """Read all *entries*: flat ones if they have a ``to`` and none has transitions."""
        keys = {key for entry in entries if isinstance(entry, dict) for key in entry}
        is_flat = "to" in keys and "transitions" not in keys
        settled: set[str] = set()
        for index, entry in enumerate(entries):
            place = (*self.reading.path, index)
            if is_flat:
                self._read_flat(place, entry, settled=settled)
            else:
                self._read_entry(place, entry)

    def _read_flat(self, path: DocumentPath, entry: Any, *, settled: set[str]) -> None:
        fields = self._read_fields(path, entry, ("from", "to", *_CONDITION_KEYS))
        if fields is not None:
            source = self._read_from(path, fields)
            self._read_transition(path, fields, source=source, settled=settled)

    def _read_entry(self, path: DocumentPath, entry: Any) -> None:
        fields = self._read_fields(path, entry, ("from", "transitions"))
        if fields is None:
            return
        source = self._read_from(path, fields)
        if source and self.reading.places[source] != path:
            message = f"a second entry from {source}; write its transitions in the first"
            self._findings.add((*path, "from"), message)
        self._read_transitions((*path, "transitions"), fields.get("transitions"), source=source)

    def _read_transitions(self, path: DocumentPath, value: Any, *, source: str | None) -> None:
        transitions = [] if value is None else value
        if not isinstance(transitions, list):
            self._findings.add(path, f"must be a list of transitions, not {yaml_kind(value)}")
            self.reading.is_understood = False
            return
        settled: set[str] = set()
        for index, transition in enumerate(transitions):
            place = (*path, index)
            fields = self._read_fields(place, transition, ("to", *_CONDITION_KEYS))
            if fields is not None:
                self._read_transition(place, fields, source=source, settled=settled)

    def _read_fields(
        self, path: DocumentPath, value: Any, known: Sequence[str]
    ) -> dict[str, Any] | None:
        fields = self._findings.read_fields(path, value, known)
        self.reading.is_understood &= fields is not None
        if fields is not None and all(key in value for key in _CONDITION_KEYS):
            # Null is no way to take the other away.
            self._findings.add((*path, "when"), "condition and when mean the same; keep one")
        return fields

    def _read_from(self, path: DocumentPath, fields: dict[str, Any]) -> str | None:
        source = self._read_name(path, fields, "from")
        if source == END:
            self._findings.add((*path, "from"), "$END ends the thread; it has no transitions")
            return None
        if source is not None:
            self.reading.entries.setdefault(source, [])
            self.reading.places.setdefault(source, path)
        return source

    def _read_transition(
        self, path: DocumentPath, fields: dict[str, Any], *, source: str | None, settled: set[str]
    ) -> None:
        """Read one transition; *settled* holds the names that have an unconditional one already."""
        to = self._read_name(path, fields, "to")
        if to == START:
            self._findings.add((*path, "to"), "$START begins a thread; no transition leads to it")
            self.reading.is_understood = False
            to = None
        condition = self._read_condition(path, fields)
        if source in settled:
            self._findings.add(path, f"is never taken: one before it from {source} always holds")
        if source is None:
            return
        if not any(key in fields for key in _CONDITION_KEYS):
            settled.add(source)
        if to is not None:
            self.reading.entries[source].append(Transition(to=to, condition=condition))
            self.reading.ways.setdefault(source, []).append(path)

    def _read_name(self, path: DocumentPath, fields: dict[str, Any], key: str) -> str | None:
        """Return the role or sentinel under *key*, or the name that was probably meant."""
        if key not in fields:
            self._findings.add(path, f"{key!r} is missing")
            self.reading.is_understood = False
            return None
        name = self._findings.read_text((*path, key), fields[key])
        if name is None:
            self.reading.is_understood = False
            return None
        # If no role could be read, that is the problem, not each use of a name.
        if name in SENTINELS or name in self._known or not self._known:
            return SENTINELS.get(name, name)
        known = [*self._roles, START if key == "from" else END]
        message = f"no role is called {shown(name)}; {suggestion(name, known)}"
        self._findings.add((*path, key), message)
        nearest = find_nearest(name, known)
        self.reading.is_understood &= nearest is not None
        return nearest

    def _read_condition(self, path: DocumentPath, fields: dict[str, Any]) -> str | None:
        given = [key for key in _CONDITION_KEYS if key in fields]
        if not given:
            return None
        path = (*path, given[0])
        value = fields[given[0]]
        if isinstance(value, bool):
            remedy = "leave it out if it always holds" if value else "remove the transition"
            self._findings.add(path, f"must be text or left out, not {yaml_kind(value)}; {remedy}")
            return None
        text = self._findings.read_text(path, value)
        if text is None:
            return None
        problem = _EMPTY if not text.strip() else self._check_condition(text)
        if problem:
            self._findings.add(path, problem)
        return text.strip()


# Routes: check that a graph leads from the start to every role, and from each to the end.
#
# A condition may turn out either way, so every transition counts.


def check_routes(findings: Findings, reading: GraphReading, *, roles: Sequence[str]) -> None:
    """Report roles that cannot be reached or left, and a graph that cannot begin or end."""
    if not reading.entries.get(START):
        place = reading.places.get(START, reading.path)
        findings.add(place, "no transition leads out of $START, so no thread could begin")
        return
    ways = {name: {each.to for each in moves} for name, moves in reading.entries.items()}
    reached = _reach(ways, [START])
    for role in roles:
        if role not in reached:
            findings.add(("roles", role), "no path from $START leads to this role")
    _check_ends(findings, reading, ways, [name for name in roles if name in reached])


def warn_of_conditions(
    findings: Findings,
    reading: GraphReading,
    roles: Mapping[str, RoleDefinition],
    list_reads: ListReads,
) -> None:
    fields = {name: list_fields(role.output_schema) for name, role in roles.items()}
    for source, transitions in reading.entries.items():
        for path, transition in zip(reading.ways.get(source, ()), transitions, strict=True):
            condition = transition.condition
            if not condition:
                continue
            asked = _HISTORY.findall(condition)
            for name, *below in list_reads(table_text(condition)):
                if name not in TABLE_NAMES and findings.has_room:
                    own = [f"meta.{each}" for each in fields.get(source, ([], True))[0]]
                    findings.warn(path, unknown_name(name, [*TABLE_NAMES, *own]))
                asked += [(source, member) for member in below if name == "meta"]
            for role, member in dict.fromkeys(asked):
                known, is_open = fields.get(role, ([], True))
                if known and not is_open and member not in known and findings.has_room:
                    message = f"the outputSchema of {role} has no {shown(member)}"
                    findings.warn(path, f"{message}; {suggestion(member, known)}")
        if transitions and transitions[-1].condition is not None:
            findings.warn(
                reading.ways[source][-1],
                f"if no condition of {source} holds, the thread stops with an error; the last "
                "transition needs none",
            )


def _check_ends(
    findings: Findings, reading: GraphReading, ways: Mapping[str, set[str]], reached: Sequence[str]
) -> None:
    dead_ends = [role for role in reached if not ways.get(role)]
    for role in dead_ends:
        place = reading.places.get(role, ("roles", role))
        findings.add(
            place, f"{role} has no outgoing transition; add one, to $END if it is the last"
        )
    # A dead end is reported already; roles that lead to it are not reported again.
    ending = _reach(_reversed(ways), [END, *dead_ends])
    if START not in ending:
        findings.add(reading.path, "no path from $START reaches $END, so no thread would ever end")
        return
    for role in reached:
        if role not in ending:
            place = reading.places.get(role, ("roles", role))
            findings.add(place, f"no path from {role} reaches $END, so a thread could not leave it")


def _reach(ways: Mapping[str, Iterable[str]], starts: Iterable[str]) -> set[str]:
    reached: set[str] = set()
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += ways.get(name, ())
    return reached


def _reversed(ways: Mapping[str, set[str]]) -> dict[str, set[str]]:
    back: dict[str, set[str]] = {}
    for source, targets in ways.items():
        for target in targets:
            back.setdefault(target, set()).add(source)
    return back
