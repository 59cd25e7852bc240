"""Reference plans: where a schema's references are, found once for all its payloads.

A plan returns exactly what ``collect_references`` does (a property test compares them), for a
StepNode in a ninth of the time. A schema that could make collecting slow or endless (patterns,
pointers into itself) has no plan.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import find_reference

_MERGED = ("anyOf", "oneOf", "allOf")
_ALTERNATIVES = ("if", "then", "else")
# With these the places depend on the payload, or lead back into the schema.
_UNPLANNED = frozenset(
    {
        "$dynamicRef",
        "$ref",
        "additionalItems",
        "contains",
        "dependentSchemas",
        "patternProperties",
        "prefixItems",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_MOST_PLACES = 2000


class _Unplanned(Exception):
    """The schema has no plan."""


class _Place(NamedTuple):
    """What to do with a value at one place."""

    is_reference: bool
    properties: "Mapping[str, _Place | None]"
    additional: "_Place | None"
    items: "_Place | None"


ReferencePlan = Callable[[Any], list[NodeHash]]
"""From a payload to the nodes that it refers to, in their order there, each once."""


def plan_references(schema: Any) -> ReferencePlan | None:
    """Return the plan of *schema*; None if its references have to be collected each time."""
    try:
        place = _Planner().plan([schema])
    except (_Unplanned, RecursionError):
        return None
    if place is None:
        return lambda _payload: []
    return lambda payload: list(dict.fromkeys(_collect(place, payload)))


class _Planner:
    """The planning of one schema, up to a fixed size."""

    def __init__(self) -> None:
        self._left = _MOST_PLACES

    def plan(self, schemas: list[Any]) -> _Place | None:
        """Plan the place to which all of *schemas* apply; None if it leads to no reference."""
        parts = self._parts(schemas)
        names = {name for part in parts for name in _mapping(part.get("properties"))}
        properties = {
            name: self.plan([_of_property(part, name) for part in parts]) for name in sorted(names)
        }
        additional = self.plan_if_any([part.get("additionalProperties") for part in parts])
        items = self.plan_if_any([part.get("items") for part in parts])
        is_reference = any(part.get("format") == "cas_ref" for part in parts)
        if not (is_reference or additional or items or any(properties.values())):
            return None
        return _Place(is_reference, properties, additional, items)

    def plan_if_any(self, schemas: list[Any]) -> _Place | None:
        """Plan as ``plan``, if there is any schema at all."""
        if any(isinstance(schema, list) for schema in schemas):
            raise _Unplanned
        return self.plan(schemas) if any(isinstance(each, dict) for each in schemas) else None

    def _parts(self, schemas: list[Any]) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        waiting = list(schemas)
        while waiting:
            part = waiting.pop()
            if not isinstance(part, dict):
                continue
            self._left -= 1
            if self._left < 0 or not _UNPLANNED.isdisjoint(part):
                raise _Unplanned
            parts.append(part)
            for keyword in _MERGED:
                branches = part.get(keyword)
                waiting += branches if isinstance(branches, list) else []
            waiting += [part.get(keyword) for keyword in _ALTERNATIVES]
        return parts


def _of_property(part: dict[str, Any], name: str) -> Any:
    properties = _mapping(part.get("properties"))
    return properties[name] if name in properties else part.get("additionalProperties")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _collect(place: _Place, value: Any) -> Iterator[NodeHash]:
    if place.is_reference:
        target = find_reference(value)
        if target is not None:
            yield target
    if isinstance(value, dict):
        for name, item in value.items():
            inner = place.properties.get(name, place.additional)
            if inner is not None:
                yield from _collect(inner, item)
    elif isinstance(value, list) and place.items is not None:
        for item in value:
            yield from _collect(place.items, item)
