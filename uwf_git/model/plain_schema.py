"""Plain schemas: the values that need no validator to be seen to be valid.

Owns: a yes for the common case: a schema of types, properties, items, enums and bounds, and a
value that keeps to it. Knows nothing of: what is wrong with a value; it never says no.
Always true: a yes is jsonschema's yes, and for the built-in schemas it is jsonschema's whole
answer (property tests hold the two together); everything else is left to jsonschema, whose
import costs a step more than everything it does besides.
"""

from collections.abc import Callable
from typing import Any

from uwf_git.model.node_hash import PATTERN, is_node_hash

_ANNOTATIONS = frozenset(
    {
        "$comment",
        "$id",
        "$schema",
        "contentEncoding",
        "default",
        "deprecated",
        "description",
        "examples",
        "format",
        "readOnly",
        "title",
        "writeOnly",
    }
)

_TYPES: dict[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool))
        or (isinstance(value, float) and value.is_integer())
    ),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}


def is_plainly_valid(schema: Any, value: Any) -> bool:
    """Tell whether *value* is seen at once to keep to *schema*; False decides nothing."""
    if schema is True:
        return True
    if not isinstance(schema, dict):
        return False
    return all(
        keyword in _ANNOTATIONS
        or (keyword in _KEYWORDS and _KEYWORDS[keyword](schema, schema[keyword], value))
        for keyword in schema
    )


def _type(_schema: dict[str, Any], wanted: Any, value: Any) -> bool:
    names = wanted if isinstance(wanted, list) else [wanted]
    return any(isinstance(name, str) and name in _TYPES and _TYPES[name](value) for name in names)


def _properties(_schema: dict[str, Any], properties: Any, value: Any) -> bool:
    if not isinstance(value, dict):
        return True
    return isinstance(properties, dict) and all(
        is_plainly_valid(part, value[name]) for name, part in properties.items() if name in value
    )


def _additional(schema: dict[str, Any], additional: Any, value: Any) -> bool:
    if not isinstance(value, dict):
        return True
    known = schema.get("properties", {})
    return isinstance(known, dict) and all(
        is_plainly_valid(additional, value[name]) for name in value if name not in known
    )


def _required(_schema: dict[str, Any], required: Any, value: Any) -> bool:
    if not isinstance(value, dict):
        return True
    return isinstance(required, list) and all(name in value for name in required)


def _items(_schema: dict[str, Any], items: Any, value: Any) -> bool:
    return not isinstance(value, list) or all(is_plainly_valid(items, item) for item in value)


def _enum(_schema: dict[str, Any], choices: Any, value: Any) -> bool:
    # Only texts: for JSON 1 is not true, for Python it is.
    return isinstance(value, str) and isinstance(choices, list) and value in choices


def _const(_schema: dict[str, Any], wanted: Any, value: Any) -> bool:
    return isinstance(value, str) and value == wanted


def _any_of(_schema: dict[str, Any], branches: Any, value: Any) -> bool:
    return isinstance(branches, list) and any(is_plainly_valid(each, value) for each in branches)


def _pattern(_schema: dict[str, Any], pattern: Any, value: Any) -> bool:
    # Only the one that the built-in schemas have; any other could run for ever.
    return bool(pattern == PATTERN) and (not isinstance(value, str) or is_node_hash(value))


def _bound(
    is_measured: Callable[[Any], bool], keeps: Callable[[Any, Any], bool]
) -> Callable[[dict[str, Any], Any, Any], bool]:
    def check(_schema: dict[str, Any], bound: Any, value: Any) -> bool:
        return _TYPES["number"](bound) and (not is_measured(value) or keeps(value, bound))

    return check


_KEYWORDS: dict[str, Callable[[dict[str, Any], Any, Any], bool]] = {
    "type": _type,
    "properties": _properties,
    "additionalProperties": _additional,
    "required": _required,
    "items": _items,
    "enum": _enum,
    "const": _const,
    "anyOf": _any_of,
    "pattern": _pattern,
    "minimum": _bound(_TYPES["number"], lambda value, bound: value >= bound),
    "maximum": _bound(_TYPES["number"], lambda value, bound: value <= bound),
    "exclusiveMinimum": _bound(_TYPES["number"], lambda value, bound: value > bound),
    "exclusiveMaximum": _bound(_TYPES["number"], lambda value, bound: value < bound),
    "minLength": _bound(_TYPES["string"], lambda value, bound: len(value) >= bound),
    "maxLength": _bound(_TYPES["string"], lambda value, bound: len(value) <= bound),
    "minItems": _bound(_TYPES["array"], lambda value, bound: len(value) >= bound),
    "maxItems": _bound(_TYPES["array"], lambda value, bound: len(value) <= bound),
}
