"""Describe a JSON Schema in words, for a person or agent who has to fill it.

``is_complete`` is False if the words leave something out, so that the schema can be shown as well;
a name, a constant or a limit is never paraphrased.
"""

import json
from dataclasses import dataclass, field
from typing import Any

_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}

_LIMITS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} fields",
    "maxProperties": "at most {} fields",
    "pattern": "matching the regular expression {}",
    "format": "in the format {}",
    "default": "{} if you do not say",
}

_FLAGS = {"uniqueItems": "no item twice"}

_TOLD = {
    *_LIMITS, *_FLAGS, "type", "const", "enum", "description", "properties", "required", "items",
    "title", "$id", "$schema", "$comment", "$defs", "definitions", "$ref", "examples",
    "deprecated", "readOnly", "writeOnly", "additionalProperties",
}  # fmt: skip

_ALTERNATIVES = ("oneOf", "anyOf")

# A schema may contain itself; the words end here, and the schema itself has the rest.
_DEEPEST = 3
_MOST_LINES = 200
_LONGEST_CHAIN = 10


@dataclass(slots=True)
class SchemaWords:
    """Describes the parts of one schema; *root* is where its ``$ref`` lead."""

    root: Any
    is_complete: bool = True
    """True while everything so far could be described in words."""

    lines: list[str] = field(default_factory=list)

    def resolve(self, schema: Any) -> dict[str, Any]:
        """Return the schema that *schema* refers to; {} for what is not an object."""
        for _ in range(_LONGEST_CHAIN):
            if not isinstance(schema, dict):
                self.is_complete = self.is_complete and schema is True
                return {}
            target = schema.get("$ref")
            if not isinstance(target, str):
                return schema
            if len(schema) > 1:
                self.is_complete = False
            schema = _follow(self.root, target)
        self.is_complete = False
        return {}

    def list_fields(self, schema: Any, *, depth: int = 0) -> None:
        """Add a line for each field of the object that *schema* describes, and for their fields."""
        resolved = self.resolve(schema)
        properties = resolved.get("properties", {})
        required = resolved.get("required", [])
        if depth >= _DEEPEST or not properties.keys() >= set(required):
            self.is_complete = False
        if depth >= _DEEPEST:
            return
        for name, part in properties.items():
            if len(self.lines) >= _MOST_LINES:
                self.is_complete = False
                return
            self._list_field(name, part, is_required=name in required, depth=depth)

    def _list_field(self, name: str, schema: Any, *, is_required: bool, depth: int) -> None:
        resolved = self.resolve(schema)
        told = "required" if is_required else "optional"
        line = f"{'  ' * depth}- `{name}` ({told}): {self.phrase(schema)}"
        description = _one_line(resolved.get("description"))
        self.lines.append(f"{line}. {description}" if description else line)
        inner = self.resolve(resolved.get("items")) if "items" in resolved else resolved
        if inner.get("properties"):
            self.list_fields(inner, depth=depth + 1)

    def phrase(self, schema: Any, *, depth: int = 0) -> str:
        """Describe in a few words what values *schema* allows."""
        resolved = self.resolve(schema)
        if set(resolved) - _TOLD - set(_ALTERNATIVES):
            self.is_complete = False
        if resolved.get("additionalProperties", True) not in (True, False):
            self.is_complete = False
        if depth >= _DEEPEST:
            self.is_complete = False
            return "see the schema"
        parts = [self._kind(resolved, depth=depth), *_limits(resolved)]
        return ", ".join(parts)

    def _kind(self, schema: dict[str, Any], *, depth: int) -> str:
        if "const" in schema:
            return f"exactly {literal(schema['const'])}"
        if isinstance(schema.get("enum"), list):
            return f"one of {', '.join(literal(each) for each in schema['enum'])}"
        for keyword in _ALTERNATIVES:
            if isinstance(schema.get(keyword), list):
                return self._alternatives(schema, keyword, depth=depth)
        types = schema.get("type", [])
        names = [types] if isinstance(types, str) else types
        return " or ".join(self._type(name, schema, depth=depth) for name in names) or "any value"

    def _alternatives(self, schema: dict[str, Any], keyword: str, *, depth: int) -> str:
        if schema.keys() - {keyword, "description", "title"}:
            self.is_complete = False
        choices = [self.phrase(each, depth=depth + 1) for each in schema[keyword]]
        if any(self.resolve(each).get("properties") for each in schema[keyword]):
            self.is_complete = False
        return " or ".join(choices)

    def _type(self, name: str, schema: dict[str, Any], *, depth: int) -> str:
        if name != "array" or "items" not in schema:
            return _TYPES.get(name, name)
        items = self.resolve(schema["items"])
        if items.get("properties"):
            return "a list of objects, each with the fields below"
        return f"a list, each item {self.phrase(items, depth=depth + 1)}"


def literal(value: Any) -> str:
    """Write *value* as it has to be written: as JSON, which is YAML too."""
    return json.dumps(value, ensure_ascii=False)


def _limits(schema: dict[str, Any]) -> list[str]:
    limits = [
        words.format(literal(schema[keyword]))
        for keyword, words in _LIMITS.items()
        if keyword in schema
    ]
    return limits + [words for keyword, words in _FLAGS.items() if schema.get(keyword) is True]


def _follow(root: Any, target: str) -> Any:
    """Return the target of a ``$ref`` within the same schema; {} for others."""
    if not target.startswith("#"):
        return None
    place = root
    for part in target[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(place, dict) or name not in place:
            return None
        place = place[name]
    return place


def _one_line(text: Any) -> str:
    return " ".join(text.split()) if isinstance(text, str) else ""
