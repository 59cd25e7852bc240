"""Check a meta against its schema, and ask for an answer as one object, `content` and `meta`."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.model.plain_schema import is_plainly_valid


def find_misfit(meta: Any, schema: dict[str, Any] | bool) -> str:  # noqa: FBT001 (true is a schema, no switch)
    try:
        if is_plainly_valid(schema, meta):
            return ""
    except RecursionError:
        return "it is nested too deeply"
    # jsonschema costs 75 ms, and most values are valid.
    from uwf_git.model.schema_check import check_value  # noqa: PLC0415 (see above)

    for problem in check_value(schema, meta):
        return f"{problem.path}: {problem.message}" if problem.path else problem.message
    return ""


class WantedObject(NamedTuple):
    schema: Mapping[str, Any]

    description: str

    guide: str = ""
    """More words for the model, in every request for the object."""

    is_told_in_words: bool = True
    """Whether the way ``plain`` adds the schema in words; if not, the prompt itself asks."""


# Below these are values, in which "$ref" is an ordinary key.
_VALUES = {"const", "enum", "default", "examples"}

# The keys below these are names that the schema's author chose.
_NAMED = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}


def move_schema(schema: Any, to: str) -> Any:
    """Return *schema* as it must be written at *to* (``#/properties/meta``) of another schema."""
    if not isinstance(schema, dict):
        return schema
    # They would change what references are relative to.
    return _move({key: each for key, each in schema.items() if key not in {"$id", "$schema"}}, to)


def _move(schema: Any, to: str) -> Any:
    if isinstance(schema, list):
        return [_move(each, to) for each in schema]
    if not isinstance(schema, dict):
        return schema
    moved: dict[str, Any] = {}
    for key, each in schema.items():
        if key == "$ref" and isinstance(each, str) and each.startswith("#"):
            moved[key] = to + each[1:]
        elif key in _VALUES:
            moved[key] = each
        elif key in _NAMED and isinstance(each, dict):
            moved[key] = {name: _move(part, to) for name, part in each.items()}
        else:
            moved[key] = _move(each, to)
    return moved


GUIDE = (
    "Your answer is taken as one JSON object with two fields. Put into `meta` the fields that the "
    "prompt asks for in front matter, and into `content` the text that it asks for after them: "
    "all that people, and those who work on after you, have to read. There is no front matter."
)

_DESCRIPTION = "Hand in the answer: `content`, its text, and `meta`, its fields."


def add_guide(prompt: str) -> str:
    return f"{prompt}\n{GUIDE}\n"


class RoleAnswer(NamedTuple):
    content: str
    meta: Any


def build_wanted_object(schema: dict[str, Any] | bool) -> WantedObject:  # noqa: FBT001 (true is a schema, no switch)
    """Return the object to request for a role whose meta has to fit *schema*."""
    content = {"type": "string", "description": "The whole text of the answer, in Markdown."}
    meta = {} if schema is True else move_schema(schema, "#/properties/meta")
    whole = {
        "type": "object",
        "properties": {"content": content, "meta": meta},
        "required": ["content", "meta"],
        "additionalProperties": False,
    }
    return WantedObject(whole, _DESCRIPTION, GUIDE, is_told_in_words=False)


def read_answer(
    value: dict[str, Any] | None,
    schema: dict[str, Any] | bool,  # noqa: FBT001 (true is a schema, no switch)
) -> RoleAnswer | None:
    """Return the two fields of *value*, or the bare meta, which some models send; else None."""
    if value is None:
        return None
    if "meta" in value:
        content = value.get("content")
        return RoleAnswer(content if isinstance(content, str) else "", value["meta"])
    return None if find_misfit(value, schema) else RoleAnswer("", value)
