"""Containers in a workflow file: from ``root``, or a bare container, to the table of a flow."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from uwf_git.model.definition.definition import (
    FlowDefinition,
    RoleDefinition,
    Surroundings,
    UsedWorkflow,
)
from uwf_git.model.definition.findings import (
    DocumentPath,
    Findings,
    shown,
    suggestion,
    yaml_kind,
)
from uwf_git.model.definition.flow_fields import (
    KEYS,
    FieldReader,
    check_shared_files,
    kinds_with,
    warn_of_branches,
    warn_of_flow,
)
from uwf_git.model.flow import (
    KINDS,
    MAX_LEVELS,
    MAX_NESTING,
    MAX_NODES,
    ROOT,
    SPLITTING,
    Flow,
    FlowNode,
    level,
)
from uwf_git.model.node import Node
from uwf_git.model.references import reference

LANGUAGES = ("javascript", "jsonata")
_LISTS = ("nodes", "else")


class FlowFile(NamedTuple):
    name: str

    language: str | None
    roles: Mapping[str, RoleDefinition]
    surroundings: Surroundings
    has_words: bool = True
    """Whether it describes roles, so that each agent should be one of them."""


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
    agents = [agent for fields in reader.nodes.values() for agent in _list_agents(fields)]
    added = {
        agent: RoleDefinition(agent, "", "", None, output_schema=True)
        for agent in agents
        if agent not in roles
    }
    warn_of_flow(findings, flow, paths=reader.paths, roles=roles)
    check_shared_files(findings, flow, paths=reader.paths, roles=roles)
    closure = {node.hash: node for used in reader.used.values() for node in used.nodes}
    return FlowDefinition(reader.nodes, language, list(closure.values())), added


class AddedNodes(NamedTuple):
    nodes: Mapping[str, Mapping[str, Any]]

    used: Sequence[Node]
    """The workflows that the new nodes run, each with all nodes that it reaches."""

    roles: Mapping[str, RoleDefinition]


def read_added_nodes(
    findings: Findings, path: DocumentPath, value: Any, *, file: FlowFile, to: tuple[Flow, str]
) -> AddedNodes:
    """Read the list of nodes *value* at *path*, which go after the last node of a list of a flow.

    *to* is the flow, and the place of a container in it; "" is the top, after the root. *file* has
    the known roles.
    """
    flow, container = to
    reader = _FlowReader(findings, file.name, flow.language, file.surroundings)
    reader.know(flow)
    if not isinstance(value, list) or not value:
        told = "an empty list" if isinstance(value, list) else yaml_kind(value)
        findings.add(path, f"must be a list of containers and agents, not {told}")
        return AddedNodes({}, (), {})
    first = len(flow.children(container)) if container else len(list(flow.list_from(ROOT)))
    around = reader.find_around(container)
    for index, item in enumerate(value):
        place = f"{container}/{first + index}".removeprefix("/")
        reader.read((*path, index), item, place, around)
    agents = [
        agent
        for place, fields in reader.nodes.items()
        if place not in flow.nodes
        for agent in _list_agents(fields)
    ]
    added = {
        agent: RoleDefinition(agent, "", "", None, output_schema=True)
        for agent in agents
        if agent not in file.roles
    }
    described = file.roles if file.has_words else {}
    whole = reader.build(flow.language)
    warn_of_flow(findings, whole, paths=reader.paths, roles=described)
    if container and whole.nodes[container].kind == "parallel":
        warn_of_branches(findings, path, whole, whole.nodes[container], described)
    closure = {node.hash: node for used in reader.used.values() for node in used.nodes}
    return AddedNodes(reader.nodes, list(closure.values()), added)


class _FlowReader:
    def __init__(
        self, findings: Findings, name: str, language: str, surroundings: Surroundings
    ) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.paths: dict[str, DocumentPath] = {}
        self.used: dict[str, UsedWorkflow] = {}
        self._findings = findings
        self._name = name
        self._find_used = surroundings.find_used
        self._fields = FieldReader(findings, language, surroundings.check_text)
        self._ids: dict[str, str] = {}

    def know(self, flow: Flow) -> None:
        for place, node in flow.nodes.items():
            self.nodes[place] = {"type": node.kind, **node.fields}
            if "id" in node.fields:
                self._ids[str(node.fields["id"])] = place

    def build(self, language: str) -> Flow:
        nodes = {
            place: FlowNode(place, fields["type"], {k: v for k, v in fields.items() if k != "type"})
            for place, fields in self.nodes.items()
        }
        return Flow(nodes, language)

    def find_around(self, place: str) -> _Around:
        """Return what the known container at *place* and those around it mean for a node in it."""
        names: tuple[str, ...] = ()
        nesting = 0
        parts = place.split("/") if place else []
        for count in range(1, len(parts) + 1):
            fields = self.nodes["/".join(parts[:count])]
            if _has_items(fields):
                names = (*names, str(fields.get("as", "item")))
            nesting += fields["type"] in SPLITTING
        return _Around(names, nesting)

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
        for key in _LISTS:
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
            others = [] if key in KEYS[kind] else kinds_with(key)
            if others:
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
        fields = self.nodes[place]
        names = around.names
        if _has_items(fields):
            names = (*names, str(fields.get("as", "item")))
        nesting = around.nesting + (fields["type"] in SPLITTING)
        inner = self._bind(path, place) if "use" in fields else 0
        if nesting + inner > MAX_NESTING and around.nesting <= MAX_NESTING:
            self._findings.add(
                path, f"{nesting + inner} threads would lie in one another; at most {MAX_NESTING}"
            )
        return _Around(names, nesting)

    def _bind(self, path: DocumentPath, place: str) -> int:
        """Bind ``use`` to a stored workflow, and return how deep its threads nest."""
        fields, path = self.nodes[place], (*path, "use")
        named = fields["use"]
        if named == self._name:
            self._findings.add(path, f"workflow {named} cannot contain itself")
            return 0
        found = self.used.get(named) or self._find_used(named)
        if isinstance(found, str):
            self._findings.add(path, found)
            return 0
        if self._name in found.list_names():
            self._findings.add(
                path, f"workflow {self._name} cannot contain itself: {named} contains it"
            )
            return 0
        try:
            nesting = found.nesting()
        except ValueError as error:
            self._findings.add(path, f"workflow {named} cannot be read: {error}")
            return 0
        self.used[named] = found
        fields["workflow"] = reference(found.hash)
        return nesting

    def _read_list(
        self, path: DocumentPath, key: str, value: Any, place: str, around: _Around
    ) -> None:
        if value is None:
            if key == "nodes":
                self._findings.add(path, "'nodes' is missing: a list of what it runs")
            return
        path = (*path, key)
        if not isinstance(value, list) or not value:
            told = "an empty list" if isinstance(value, list) else yaml_kind(value)
            self._findings.add(path, f"must be a list of containers and agents, not {told}")
            return
        mark = "e" if key == "else" else ""
        for index, item in enumerate(value):
            self.read((*path, index), item, f"{place}/{mark}{index}", around)


def _list_agents(fields: Mapping[str, Any]) -> list[str]:
    """List the agents that act at a node: who does the work, and who verifies it."""
    found = [fields.get("agentId"), fields.get("verifiedBy", {}).get("agentId")]
    return [str(agent) for agent in found if agent is not None]


def _has_items(fields: Mapping[str, Any]) -> bool:
    return fields["type"] == "map" or (fields["type"] == "loop" and "over" in fields)


def read_language(findings: Findings, fields: Mapping[str, Any]) -> str | None:
    """Read ``language``, which stands beside ``root``."""
    value = fields.get("language")
    if value is None or value in LANGUAGES:
        return value
    told = shown(value) if isinstance(value, str) else yaml_kind(value)
    findings.add(("language",), f"must be {' or '.join(LANGUAGES)}, not {told}")
    return None
