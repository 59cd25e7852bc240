"""The least value that fits a JSON Schema: what an agent says that says as little as it may.

No value is made for every schema. Whoever needs a fitting one checks it.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

# A schema may contain itself.
_DEEPEST = 8
_LONGEST_TEXT = 1_000
_MOST_ITEMS = 100

# null comes last: where a schema allows it and more, a workflow expects more.
_TYPES = ("boolean", "integer", "number", "string", "array", "object", "null")

# Texts for patterns and formats, the emptiest first.
_TEXTS = (
    *("a", "A", "0", "1", "a1", "aa", "aaa", "a-b", "a_b", "a.b", "a/b", "0.0.0", "1.0.0", "#1"),
    *("A-1", "a.md", "000-a.md", "2000-01-01", "00:00:00Z", "2000-01-01T00:00:00Z"),
    *("a@example.com", "https://example.com/", "0000000", "0" * 40),
)


def list_least(schema: Any) -> Iterator[Any]:
    """Yield values that may fit *schema*, the least first: no text, no item, no free field."""
    yield from _Maker(schema).make(schema, 0)


class _Maker:
    def __init__(self, root: Any) -> None:
        self._root = root

    def make(self, schema: Any, depth: int) -> Iterator[Any]:
        schema = self._resolve(schema)
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            yield {}
            return
        if "const" in schema:
            yield schema["const"]
            return
        if isinstance(schema.get("enum"), list):
            yield from schema["enum"]
            return
        merged = dict(schema)
        for part in schema.get("allOf", ()):
            merged = _united(merged, self._resolve(part))
        for keyword in ("anyOf", "oneOf"):
            for part in schema.get(keyword, ()):
                whole = _united({**merged, keyword: ()}, self._resolve(part))
                yield from self.make({**whole, "allOf": ()}, depth)
        for kind in _kinds(merged):
            yield from self._of_kind(kind, merged, depth)

    def _of_kind(self, kind: str, schema: Mapping[str, Any], depth: int) -> Iterator[Any]:
        if kind == "object":
            yield from self._objects(schema, depth)
        elif kind == "array":
            yield self._array(schema, depth)
        elif kind == "string":
            yield from _texts(schema)
        elif kind in ("integer", "number"):
            yield _number(schema, is_whole=kind == "integer")
        else:
            yield from {"boolean": (False, True), "null": (None,)}[kind]

    def _objects(self, schema: Mapping[str, Any], depth: int) -> Iterator[Any]:
        properties = schema.get("properties", {})
        least = {
            name: self._first(properties.get(name, True), depth + 1)
            for name in schema.get("required", ())
        }
        yield least
        if depth == 0:
            # minProperties, dependencies and the like ask for more.
            rest = {name: self._first(part, 1) for name, part in properties.items()}
            yield {**rest, **least}

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        prefix = list(schema.get("prefixItems", ()))
        count = min(int(schema.get("minItems", 0)), _MOST_ITEMS)
        parts = [*prefix, *[schema.get("items", True)] * count][:count]
        if schema.get("uniqueItems") and count > 1:
            different = list(self.make(schema.get("items", True), depth + 1))
            return different[:count]
        return [self._first(part, depth + 1) for part in parts]

    def _first(self, schema: Any, depth: int) -> Any:
        return next(self.make(schema, depth), None)

    def _resolve(self, schema: Any) -> Any:
        for _ in range(_DEEPEST):
            target = schema.get("$ref") if isinstance(schema, Mapping) else None
            if not isinstance(target, str):
                return schema
            found = self._root
            for part in target.removeprefix("#").split("/")[1:]:
                key = part.replace("~1", "/").replace("~0", "~")
                found = found.get(key) if isinstance(found, Mapping) else None
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            schema = _united(rest, found) if rest else found
        return True


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    told = schema.get("type")
    if told is None:
        if schema.keys() & {"items", "minItems", "prefixItems"}:
            return ["array"]
        return ["object"]
    named = [told] if isinstance(told, str) else told
    return [kind for kind in _TYPES if kind in named]


def _texts(schema: Mapping[str, Any]) -> Iterator[str]:
    least = min(int(schema.get("minLength", 0)), _LONGEST_TEXT)
    yield "a" * least
    if "pattern" in schema or "format" in schema:
        yield from _TEXTS


def _number(schema: Mapping[str, Any], *, is_whole: bool) -> float:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    step = schema.get("multipleOf", 1 if is_whole else 0)
    lower = max((each for each in (low, above) if each is not None), default=-math.inf)
    upper = min((each for each in (high, below) if each is not None), default=math.inf)
    value: float = 0
    if lower > 0 or lower == above == 0:
        value = math.ceil(lower / step) * step if step else lower
        if above is not None and value <= above:
            value += step or (min(upper, above + 2) - above) / 2
    elif upper < 0 or upper == below == 0:
        value = math.floor(upper / step) * step if step else upper
        if below is not None and value >= below:
            value -= step or (below - max(lower, below - 2)) / 2
    return int(value) if is_whole and value == value // 1 else value


def _united(one: Any, other: Any) -> dict[str, Any]:
    """Return a schema that asks for what both ask, as far as plain keywords tell."""
    united = dict(one) if isinstance(one, Mapping) else {}
    for key, value in (other if isinstance(other, Mapping) else {}).items():
        if key == "required":
            united[key] = list(dict.fromkeys([*united.get(key, ()), *value]))
        elif key == "properties":
            united[key] = {**united.get(key, {}), **value}
        else:
            united[key] = value
    return united
