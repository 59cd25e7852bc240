"""The schema of schema nodes: JSON Schema 2020-12, as far as uwf relies on it."""

from typing import Any

_SCHEMA: dict[str, Any] = {"type": ["object", "boolean"]}
_SCHEMAS: dict[str, Any] = {"type": "array", "items": _SCHEMA}
_NAMED_SCHEMAS: dict[str, Any] = {"type": "object", "additionalProperties": _SCHEMA}
_TEXT: dict[str, Any] = {"type": "string"}

# A real JSON Schema, and valid against itself. It checks the keywords that hold schemas or mark
# references; the validator checks the rest of 2020-12 when a schema is put.
META_SCHEMA: dict[str, Any] = {
    "title": "JSON Schema",
    "description": "The type of every schema node, and of this node itself: JSON Schema 2020-12",
    "type": ["object", "boolean"],
    "properties": {
        "title": _TEXT,
        "description": _TEXT,
        "format": _TEXT,
        "properties": _NAMED_SCHEMAS,
        "patternProperties": _NAMED_SCHEMAS,
        "additionalProperties": _SCHEMA,
        "items": _SCHEMA,
        "prefixItems": _SCHEMAS,
        "anyOf": _SCHEMAS,
        "oneOf": _SCHEMAS,
        "allOf": _SCHEMAS,
        "if": _SCHEMA,
        "then": _SCHEMA,
        "else": _SCHEMA,
        "not": _SCHEMA,
        "required": {"type": "array", "items": _TEXT},
        "enum": {"type": "array"},
    },
}
