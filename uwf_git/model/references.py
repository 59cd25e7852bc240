"""References: which nodes a payload refers to.

Only a place whose schema has ``format: cas_ref`` is a reference, so a ``$ref`` inside a role's own
JSON Schema is not one. json-cas collects the same way and writes references as bare strings.
Format: FORMAT.md, "References".
"""

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

from uwf_git.model.node_hash import NodeHash, is_node_hash

_BRANCHES = ("anyOf", "oneOf", "allOf")
_ALTERNATIVES = ("if", "then", "else")
_POINTERS = ("$ref", "$dynamicRef")


def reference(target: NodeHash) -> dict[str, str]:
    """Write a reference to *target*, as in a payload."""
    return {"$ref": target}


def find_reference(value: Any) -> NodeHash | None:
    """Read a reference in either spelling: ``{"$ref": name}``, or json-cas's bare name."""
    target = value.get("$ref") if isinstance(value, dict) and len(value) == 1 else value
    return NodeHash(target) if isinstance(target, str) and is_node_hash(target) else None


def collect_references(schema: Any, payload: Any) -> list[NodeHash]:
    """List the nodes that *payload* refers to, in their order there, each once.

    Every branch of ``anyOf``, ``oneOf``, ``allOf`` and ``if/then/else`` is followed, valid or not:
    keeping a node too many costs bytes, losing one costs the thread.
    """
    return list(dict.fromkeys(_collect(schema, [schema], payload)))


def _collect(root: Any, schemas: list[Any], value: Any) -> Iterator[NodeHash]:
    """Collect from *value*, to which all of *schemas* apply.

    They are followed together, each once: one by one, two that lead to each other would double the
    work at every level.
    """
    places = _schemas_of_place(root, schemas)
    if any(place.get("format") == "cas_ref" for place in places):
        target = find_reference(value)
        if target is not None:
            yield target
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _collect(root, _each(_schemas_of_property, places, name), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _collect(root, _each(_schemas_of_item, places, index), item)


def _each(
    schemas_of: Callable[[dict[str, Any], Any], Iterator[Any]],
    places: list[dict[str, Any]],
    part: str | int,
) -> list[Any]:
    found: list[Any] = []
    for place in places:
        found += schemas_of(place, part)
    return found


def _schemas_of_place(root: Any, schemas: list[Any]) -> list[dict[str, Any]]:
    """List every schema that applies to the same place as *schemas*, each once."""
    found: dict[int, dict[str, Any]] = {}
    waiting = list(schemas)
    while waiting:
        part = waiting.pop()
        # Schemas may refer to one another in a circle; identity ends it.
        if not isinstance(part, dict) or id(part) in found:
            continue
        found[id(part)] = part
        for keyword in _BRANCHES:
            branches = part.get(keyword)
            waiting += branches if isinstance(branches, list) else []
        waiting += [part.get(keyword) for keyword in _ALTERNATIVES]
        dependent = part.get("dependentSchemas")
        waiting += dependent.values() if isinstance(dependent, dict) else []
        for keyword in _POINTERS:
            waiting.append(_local_target(root, part.get(keyword)))
    return list(found.values())


def _local_target(root: Any, pointer: Any) -> Any:
    """Return the target of a ``$ref`` within the schema; None for all others.

    Within it: ``#``, a JSON pointer (``#/$defs/name``, as RFC 6901 writes it in a URI), or the name
    of an anchor (``#name``).
    """
    if not isinstance(pointer, str) or not pointer.startswith("#"):
        return None
    fragment = unquote(pointer[1:])
    if fragment and not fragment.startswith("/"):
        return _find_anchor(root, fragment)
    target = root
    for part in fragment.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(target, list) and key.isdecimal() and int(key) < len(target):
            target = target[int(key)]
        else:
            target = target.get(key) if isinstance(target, dict) else None
    return target


def _find_anchor(root: Any, anchor: str) -> Any:
    waiting = [root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if anchor in (part.get("$anchor"), part.get("$dynamicAnchor")):
                return part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return None


def _schemas_of_property(schema: dict[str, Any], name: str) -> Iterator[Any]:
    properties = schema.get("properties")
    patterns = schema.get("patternProperties")
    matched = False
    if isinstance(properties, dict) and name in properties:
        matched = True
        yield properties[name]
    if isinstance(patterns, dict):
        for pattern, part in patterns.items():
            if _may_match(pattern, name):
                matched = True
                yield part
    if not matched:
        yield schema.get("additionalProperties")
    yield schema.get("unevaluatedProperties")


def _may_match(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        # Python cannot compile every ECMA expression: rather one reference too many.
        return True


def _schemas_of_item(schema: dict[str, Any], index: int) -> Iterator[Any]:
    prefix, items = schema.get("prefixItems"), schema.get("items")
    if isinstance(prefix, list) and index < len(prefix):
        yield prefix[index]
    elif isinstance(items, list):
        # Drafts before 2020-12 wrote it so, and json-cas's nodes may be as old.
        yield items[index] if index < len(items) else schema.get("additionalItems")
    else:
        yield items
    yield schema.get("contains")
    yield schema.get("unevaluatedItems")
