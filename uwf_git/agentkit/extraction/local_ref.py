"""References within one schema: follow one, and move a schema to another place."""

from typing import Any

# Below these are values, in which "$ref" is an ordinary key.
_VALUES = {"const", "enum", "default", "examples"}

# The keys below these are names that the schema's author chose.
_NAMED = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}


def follow_ref(root: Any, target: str) -> Any:
    """Return what the reference *target* names in *root*; None if it leads elsewhere."""
    if not target.startswith("#"):
        return None
    place = root
    for part in target[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(place, dict) and name in place:
            place = place[name]
        elif isinstance(place, list) and name.isdecimal() and int(name[:6]) < len(place):
            place = place[int(name[:6])]
        else:
            return None
    return place


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
