"""A fast check of values against simple schemas, without jsonschema.

It knows types, properties, items, enums and bounds. True is jsonschema's answer too (a property
test compares them); False decides nothing, except for the built-in schemas, where it is
jsonschema's whole answer. Importing jsonschema costs more than the rest of a step.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from uwf_git.model.names import PATTERN, is_node_hash
from uwf_git.surroundings import Lazy

if TYPE_CHECKING:
    from uwf_git.model import schema_check as schema_check  # noqa: PLC0414 (others import it from here)
else:
    schema_check = Lazy("uwf_git.model.schema_check")  # jsonschema: 60 ms

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

PlainCheck: TypeAlias = Callable[[Any], bool]
"""Return True if a value is valid; False decides nothing."""

_TYPES: dict[str, PlainCheck] = {
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
    """Return True if *value* is valid against *schema*; False decides nothing."""
    return plain_check(schema)(value)


def plain_check(schema: Any) -> PlainCheck:
    """Compile the check of *schema* for many values, part by part as values reach the parts."""
    if schema is True:
        return lambda _value: True
    if not isinstance(schema, dict):
        return _no
    checks: list[PlainCheck] = []
    for keyword, wanted in schema.items():
        if keyword in _KEYWORDS:
            checks.append(_KEYWORDS[keyword](schema, wanted))
        elif keyword not in _ANNOTATIONS:
            return _no
    return checks[0] if len(checks) == 1 else _all_of(checks)


def _no(_value: Any) -> bool:
    return False


def _all_of(checks: list[PlainCheck]) -> PlainCheck:
    def check(value: Any) -> bool:
        for each in checks:  # noqa: SIM110 - all() would make a generator for every value
            if not each(value):
                return False
        return True

    return check


class _Later:
    """The check of a part of a schema, compiled on first use."""

    __slots__ = ("_check", "_schema")

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._check: PlainCheck | None = None

    def __call__(self, value: Any) -> bool:
        if self._check is None:
            self._check = plain_check(self._schema)
        return self._check(value)


def _type(_schema: dict[str, Any], wanted: Any) -> PlainCheck:
    names = wanted if isinstance(wanted, list) else [wanted]
    checks = [_TYPES[name] for name in names if isinstance(name, str) and name in _TYPES]
    if len(checks) == 1:
        return checks[0]
    return lambda value: any(check(value) for check in checks)


def _properties(_schema: dict[str, Any], properties: Any) -> PlainCheck:
    if not isinstance(properties, dict):
        return _is_no_object
    parts = {name: _Later(part) for name, part in properties.items()}

    def check(value: Any) -> bool:
        if isinstance(value, dict):
            for name, item in value.items():
                if name in parts and not parts[name](item):
                    return False
        return True

    return check


def _additional(schema: dict[str, Any], additional: Any) -> PlainCheck:
    known = schema.get("properties", {})
    if not isinstance(known, dict):
        return _is_no_object
    rest = _Later(additional)

    def check(value: Any) -> bool:
        return not isinstance(value, dict) or all(
            rest(value[name]) for name in value.keys() - known.keys()
        )

    return check


def _required(_schema: dict[str, Any], required: Any) -> PlainCheck:
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return _is_no_object
    names = frozenset(required)
    return lambda value: not isinstance(value, dict) or names <= value.keys()


def _is_no_object(value: Any) -> bool:
    return not isinstance(value, dict)


def _items(_schema: dict[str, Any], items: Any) -> PlainCheck:
    each = _Later(items)
    return lambda value: not isinstance(value, list) or all(map(each, value))


def _enum(_schema: dict[str, Any], choices: Any) -> PlainCheck:
    # Only strings: in Python 1 equals true, in JSON it does not.
    return lambda value: isinstance(value, str) and isinstance(choices, list) and value in choices


def _const(_schema: dict[str, Any], wanted: Any) -> PlainCheck:
    return lambda value: isinstance(value, str) and bool(value == wanted)


def _any_of(_schema: dict[str, Any], branches: Any) -> PlainCheck:
    if not isinstance(branches, list):
        return _no
    checks = [_Later(branch) for branch in branches]
    return lambda value: any(check(value) for check in checks)


def _pattern(_schema: dict[str, Any], pattern: Any) -> PlainCheck:
    # Only the pattern of the built-in schemas; any other could run for ever.
    if pattern != PATTERN:
        return _no
    return lambda value: not isinstance(value, str) or is_node_hash(value)


def _bound(
    is_measured: PlainCheck, keeps: Callable[[Any, Any], bool]
) -> Callable[[dict[str, Any], Any], PlainCheck]:
    def make(_schema: dict[str, Any], bound: Any) -> PlainCheck:
        if not _TYPES["number"](bound):
            return _no
        return lambda value: not is_measured(value) or keeps(value, bound)

    return make


_KEYWORDS: dict[str, Callable[[dict[str, Any], Any], PlainCheck]] = {
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
