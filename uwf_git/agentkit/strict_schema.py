"""Derive the strict schema that endpoints take from a role's schema, and restore its values.

A restored value fits the role's schema if every keyword could be kept (``is_exact``); otherwise the
role's schema still has to be checked. Only the difference between a null and an absent optional
field is lost.
Source: "structured outputs" of OpenAI and those after it: every object closed, every property
required, no optional but nullable, few keywords, little depth.
"""

import json
from typing import Any, NamedTuple

from uwf_git.agentkit.ladder import find_misfit, move_schema
from uwf_git.engine.prompt import follow_reference

_DEEPEST = 9
_MOST_PARTS = 2_000
_LONGEST_CHAIN = 10

_ANNOTATIONS = {
    "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
    "$comment", "$schema", "$id", "$defs", "definitions",
}  # fmt: skip
_SHAPES = {"type", "properties", "required", "additionalProperties", "items", "enum", "const"}
_ALTERNATIVES = ("anyOf", "oneOf")

_SIMPLE = {"string", "integer", "number", "boolean", "null"}


class StrictSchema(NamedTuple):
    """What ``derive_strict`` derives."""

    schema: dict[str, Any]

    is_exact: bool
    """Whether it says all that the role's schema says; the rest is checked afterwards."""


class _Inexpressible(Exception):
    """No strict schema can say this: an open object, a value of any type, a loop."""


def derive_strict(schema: Any) -> StrictSchema | None:
    """Derive the strict form of *schema*; None if there is none."""
    derivation = _Derivation(schema)
    try:
        derived = derivation.derive(schema, depth=0)
    except (_Inexpressible, RecursionError):
        return None
    return StrictSchema(derived, derivation.is_exact)


def restore(value: Any, schema: Any) -> Any:
    """Return *value*, of the strict schema, as *schema* means it: without optional null fields."""
    return _restore(value, schema, schema, depth=0)


class _Derivation:
    """One derivation; *root* is the schema that references are resolved in."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._parts = 0
        self.is_exact = True

    def derive(self, schema: Any, *, depth: int) -> dict[str, Any]:
        self._parts += 1
        if depth > _DEEPEST or self._parts > _MOST_PARTS:
            raise _Inexpressible
        resolved, is_whole = _resolve(schema, self._root)
        if not is_whole or resolved.keys() - _SHAPES - _ANNOTATIONS - set(_ALTERNATIVES):
            self.is_exact = False
        derived = self._shape(resolved, depth)
        description = resolved.get("description")
        return {**derived, "description": description} if isinstance(description, str) else derived

    def _shape(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        for keyword in _ALTERNATIVES:
            if isinstance(schema.get(keyword), list):
                return self._alternatives(schema, keyword, depth)
        if "const" in schema:
            return self._constants(schema, [schema["const"]])
        if schema.get("enum"):
            return self._constants(schema, schema["enum"])
        kinds = _kinds(schema)
        if len(kinds) == 1:
            return self._kind(kinds[0], schema, depth)
        return {"anyOf": [self._kind(kind, schema, depth) for kind in kinds]}

    def _alternatives(self, schema: dict[str, Any], keyword: str, depth: int) -> dict[str, Any]:
        choices = schema[keyword]
        if not choices or schema.keys() & (_SHAPES - {"type"} | set(_ALTERNATIVES) - {keyword}):
            raise _Inexpressible
        if keyword == "oneOf" or "type" in schema:
            # That only one of them holds is checked afterwards.
            self.is_exact = False
        return {"anyOf": [self.derive(choice, depth=depth + 1) for choice in choices]}

    def _constants(self, schema: dict[str, Any], values: list[Any]) -> dict[str, Any]:
        if schema.keys() & (_SHAPES - {"const", "enum"}) or {"const", "enum"} <= schema.keys():
            self.is_exact = False
        by_kind: dict[str, list[Any]] = {}
        for value in values:
            by_kind.setdefault(_kind_of(value), []).append(value)
        parts = [{"type": kind, "enum": each} for kind, each in by_kind.items()]
        return parts[0] if len(parts) == 1 else {"anyOf": parts}

    def _kind(self, kind: str, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        if kind in _SIMPLE:
            return {"type": kind}
        if kind == "array" and "items" in schema:
            return {"type": "array", "items": self.derive(schema["items"], depth=depth + 1)}
        if kind == "object":
            return self._object(schema, depth)
        raise _Inexpressible

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        if not isinstance(properties, dict):
            raise _Inexpressible
        required = _required(schema)
        if not required <= properties.keys():
            raise _Inexpressible
        if not properties and schema.get("additionalProperties") is not False:
            # A map: closed, it could hold nothing.
            raise _Inexpressible
        derived = {}
        for name, part in properties.items():
            one = self.derive(part, depth=depth + 1)
            derived[name] = one if name in required else _nullable(one)
        return {
            "type": "object",
            "properties": derived,
            "required": list(derived),
            "additionalProperties": False,
        }


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if kind == "null":
        return schema
    if kind in _SIMPLE and "enum" not in schema:
        return {**schema, "type": [kind, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def _kinds(schema: dict[str, Any]) -> list[str]:
    """List the types of *schema*; the one that its keywords imply if it names none."""
    named = schema.get("type")
    kinds = [named] if isinstance(named, str) else named
    if kinds is None:
        kinds = ["object"] if "properties" in schema else ["array"] if "items" in schema else []
    if not isinstance(kinds, list) or not kinds:
        raise _Inexpressible
    return [str(kind) for kind in kinds]


def _kind_of(value: Any) -> str:
    if value is None:
        return "null"
    for kind, types in (("boolean", bool), ("integer", int), ("number", float), ("string", str)):
        if isinstance(value, types):
            return kind
    raise _Inexpressible


def _required(schema: dict[str, Any]) -> set[str]:
    required = schema.get("required", [])
    return set(required) if isinstance(required, list) else set()


def _resolve(schema: Any, root: Any) -> tuple[dict[str, Any], bool]:
    """Resolve references; return also whether no keyword beside one was dropped."""
    is_whole = True
    for _ in range(_LONGEST_CHAIN):
        if not isinstance(schema, dict):
            break
        target = schema.get("$ref")
        if not isinstance(target, str):
            return schema, is_whole
        is_whole = is_whole and not schema.keys() - {"$ref"} - _ANNOTATIONS
        schema = follow_reference(root, target)
    raise _Inexpressible


def _restore(value: Any, schema: Any, root: Any, *, depth: int) -> Any:
    if depth > 2 * _DEEPEST:
        return value
    try:
        resolved, _ = _resolve(schema, root)
    except _Inexpressible:
        return value
    for keyword in _ALTERNATIVES:
        if isinstance(resolved.get(keyword), list):
            return _restore_choice(value, resolved[keyword], root, depth)
    if isinstance(value, list) and "items" in resolved:
        return [_restore(each, resolved["items"], root, depth=depth + 1) for each in value]
    properties = resolved.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return value
    required = _required(resolved)
    return {
        name: _restore(each, properties.get(name, True), root, depth=depth + 1)
        for name, each in value.items()
        if each is not None or name in required or name not in properties
    }


def _restore_choice(value: Any, choices: list[Any], root: Any, depth: int) -> Any:
    """Restore *value* by the first alternative that it then fits."""
    for choice in choices:
        restored = _restore(value, choice, root, depth=depth + 1)
        if not find_misfit(restored, _rooted(choice, root)):
            return restored
    return value


def _rooted(choice: Any, root: Any) -> Any:
    """Return *choice* as a separate schema whose references still resolve."""
    if not isinstance(choice, dict) or '"$ref"' not in json.dumps(choice):
        return choice
    place = "#/$defs/root"
    return {**move_schema(choice, place), "$defs": {"root": move_schema(root, place)}}
