"""The moderator's graph in a workflow file, and whether it leads to every role and to the end."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from uwf_git.model.definition.definition import RoleDefinition
from uwf_git.model.definition.findings import (
    DocumentPath,
    Findings,
    find_nearest,
    shown,
    suggestion,
    yaml_kind,
)
from uwf_git.model.definition.roles import SENTINELS
from uwf_git.model.workflow import END, START, Transition

# The moderator's graph in a workflow file: entries (seed 000) or a flat list (seed 001).
#
# The result has only role names, ``$START`` and ``$END``. definition/routes.py checks where it
# leads.

CheckCondition = Callable[[str], str | None]

_CONDITION_KEYS = ("condition", "when")
_MEMBER = re.compile(r"(?<![\w.$\['\"])meta\.(\w+)")
"""A member of the meta of the step just done; behind a bracket perhaps of another step."""

_PLAIN_SCHEMA = {"$schema", "title", "description", "type", "properties", "required"}
_EMPTY = "the condition is empty; leave it out if it always holds"


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
    reader = _GraphReader(findings, path, roles=roles, check_condition=check_condition)
    if isinstance(value, list) and value:
        reader.read_list(value)
    else:
        findings.add(path, _no_list(value))
        reader.reading.is_understood = False
    return reader.reading


def _no_list(value: Any) -> str:
    if value is None or value == []:
        return (
            "a workflow needs a moderator: a list of transitions, the first from $START; or a "
            "root: a container"
        )
    return f"must be a list of transitions, not {yaml_kind(value)}"


class _GraphReader:
    def __init__(
        self,
        findings: Findings,
        path: DocumentPath,
        *,
        roles: Sequence[str],
        check_condition: CheckCondition,
    ) -> None:
        self.reading = GraphReading(path)
        self._findings = findings
        self._roles = roles
        self._known = frozenset(roles)
        self._check_condition = check_condition

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
        if len(given) > 1:
            self._findings.add((*path, "when"), "condition and when mean the same; keep one")
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
    ways = {
        name: {transition.to for transition in transitions}
        for name, transitions in reading.entries.items()
    }
    reached = _reach(ways, [START])
    for role in roles:
        if role not in reached:
            findings.add(("roles", role), "no path from $START leads to this role")
    _check_ends(findings, reading, ways=ways, reached=[name for name in roles if name in reached])


def warn_of_conditions(
    findings: Findings, reading: GraphReading, roles: Mapping[str, RoleDefinition]
) -> None:
    for source, transitions in reading.entries.items():
        known = _known_members(roles.get(source))
        for path, transition in zip(reading.ways.get(source, ()), transitions, strict=True):
            condition = transition.condition or ""
            for named in _MEMBER.findall(condition):
                # In `history` it is the meta of any step.
                if known and named not in known and "history" not in condition:
                    message = f"the outputSchema of {source} has no {shown(named)}"
                    findings.warn(path, f"{message}; {suggestion(named, known)}")
        if transitions and transitions[-1].condition is not None:
            findings.warn(
                reading.ways[source][-1],
                f"if no condition of {source} holds, the thread stops with an error; the last "
                "transition needs none",
            )


def _known_members(role: RoleDefinition | None) -> list[str]:
    """List the members that the meta of *role* may have; empty if it may have others."""
    schema = None if role is None else role.output_schema
    if not isinstance(schema, dict) or not schema.keys() <= _PLAIN_SCHEMA:
        return []
    return list(schema.get("properties", ()))


def _check_ends(
    findings: Findings,
    reading: GraphReading,
    *,
    ways: Mapping[str, set[str]],
    reached: Sequence[str],
) -> None:
    dead_ends = [role for role in reached if not ways.get(role)]
    for role in dead_ends:
        place = reading.places.get(role, ("roles", role))
        findings.add(
            place, f"{role} has no outgoing transition; add one, to $END if it is the last"
        )
    # A dead end is reported already; roles that lead to it are not reported again.
    leads_back = _reversed(ways)
    ending = _reach(leads_back, [END, *dead_ends])
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
