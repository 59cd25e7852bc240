from typing import Any

import pytest

from uwf_git.agentkit.extraction.check import find_misfit

OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("meta", "schema"), [({"n": 1}, OBJECT), (None, True), ("a", {"pattern": "^a$"})]
)
def test_what_fits_is_not_talked_about(meta: Any, schema: Any) -> None:
    assert find_misfit(meta, schema) == ""


@pytest.mark.parametrize(
    ("meta", "schema", "told"),
    [
        ({"n": "one"}, OBJECT, "n: 'one' is not of type 'integer'"),
        ({}, OBJECT, "'n' is a required property"),
        (None, OBJECT, "None is not of type 'object'"),
        (1, False, "False schema does not allow 1"),
    ],
)
def test_misfit_is_reported_with_its_place(meta: Any, schema: Any, told: str) -> None:
    assert told in find_misfit(meta, schema)


def test_endless_nesting_is_reported_too() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    assert find_misfit(deep, {"type": "array", "items": {"$ref": "#"}}) != ""
