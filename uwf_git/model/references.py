"""References: which nodes a payload points at.

Owns: collection by schema. Knows nothing of: where nodes are kept.
Always true: only a place whose schema carries ``format: cas_ref`` is a reference, so that a
``$ref`` inside a role's own JSON Schema is left alone.
Source: DESIGN 3; json-cas collects the same way and writes references as bare strings.
"""

import re
from collections.abc import Iterator
from typing import Any

from uwf_git.model.node_hash import NodeHash, is_node_hash

_BRANCHES = ("anyOf", "oneOf", "allOf")
_ALTERNATIVES = ("if", "then", "else")


def reference(target: NodeHash) -> dict[str, str]:
    """Write a reference to *target*, as it stands in a payload."""
    return {"$ref": target}


def find_reference(value: Any) -> NodeHash | None:
    """Read a reference in either spelling: ``{"$ref": name}``, or json-cas's bare name."""
    target = value.get("$ref") if isinstance(value, dict) and len(value) == 1 else value
    return NodeHash(target) if isinstance(target, str) and is_node_hash(target) else None


def collect_references(schema: Any, payload: Any) -> list[NodeHash]:
    """List the nodes that *payload* points at, in the order they stand there, each once.

    Every branch of ``anyOf``, ``oneOf``, ``allOf`` and ``if/then/else`` is followed, whether or
    not it is the one that holds: a node kept for nothing costs bytes, a node lost costs the
    thread.
    """
    return list(dict.fromkeys(_collect(schema, schema, payload)))


def _collect(root: Any, schema: Any, value: Any) -> Iterator[NodeHash]:
    for place in _schemas_of_place(root, schema):
        if place.get("format") == "cas_ref":
            target = find_reference(value)
            if target is not None:
                yield target
        elif isinstance(value, dict):
            for name, item in value.items():
                for part in _schemas_of_property(place, name):
                    yield from _collect(root, part, item)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield from _collect(root, _schema_of_item(place, index), item)


def _schemas_of_place(root: Any, schema: Any) -> list[dict[str, Any]]:
    """List every schema that speaks of the same place as *schema*, itself first, each once."""
    found: list[dict[str, Any]] = []
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        # Schemas may point at one another in a circle; identity ends it.
        if not isinstance(part, dict) or any(part is known for known in found):
            continue
        found.append(part)
        for keyword in _BRANCHES:
            branches = part.get(keyword)
            waiting += branches if isinstance(branches, list) else []
        waiting += [part.get(keyword) for keyword in _ALTERNATIVES]
        waiting.append(_local_target(root, part.get("$ref")))
    return found


def _local_target(root: Any, pointer: Any) -> Any:
    """Follow a ``$ref`` within the schema (``#/$defs/name``); anything else leads nowhere."""
    if not isinstance(pointer, str) or not pointer.startswith("#"):
        return None
    target = root
    for part in pointer[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        target = target.get(key) if isinstance(target, dict) else None
    return target


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


def _may_match(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        # An ECMA expression that Python cannot read: rather one reference too many.
        return True


def _schema_of_item(schema: dict[str, Any], index: int) -> Any:
    prefix = schema.get("prefixItems")
    if isinstance(prefix, list) and index < len(prefix):
        return prefix[index]
    return schema.get("items")
