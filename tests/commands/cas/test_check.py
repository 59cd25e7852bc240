import time
from typing import Any

import pytest
from cas_nodes import ENDLESS, PERSON
from refusing import refuses

from uwf_git.commands.cas import check_payload, find_problems
from uwf_git.errors import Refused
from uwf_git.model.builtin import META, META_NODE
from uwf_git.model.node import Node, build_node, build_self_typed_node
from uwf_git.model.problem import Problem


def schema_node(schema: Any) -> Node:
    return build_node(META, schema, timestamp=0)


def test_all_problems_are_listed_with_their_places() -> None:
    problems = find_problems(schema_node(PERSON), {"name": 5, "note": 6})

    assert problems == [
        Problem("name", "5 is not of type 'string'"),
        Problem("note", "6 is not of type 'object'"),
    ]


@pytest.mark.parametrize(
    "schema",
    [{"type": "strin"}, {"$ref": "#/$defs/gone"}, {"pattern": "("}, [], "object", {"format": 1}],
)
@pytest.mark.parametrize("meta", [META_NODE, build_self_typed_node({}, timestamp=0)])
def test_payload_of_a_meta_schema_has_to_be_a_json_schema(meta: Node, schema: Any) -> None:
    with refuses("invalid-payload", match="this is not a JSON Schema: 1 problem at "):
        check_payload(meta, schema)


def test_payload_of_a_foreign_meta_schema_has_to_keep_to_it_too() -> None:
    meta = build_self_typed_node({"required": ["title"]}, timestamp=0)

    assert find_problems(meta, {"title": "A"}) == []
    assert [each.message for each in find_problems(meta, {})] == ["'title' is a required property"]


def test_schema_deeper_than_the_quick_check_is_still_checked() -> None:
    schema: Any = {"type": "string"}
    payload: Any = "deep"
    for _level in range(200):
        schema, payload = {"type": "array", "items": schema}, [payload]

    told = [each.message for each in find_problems(schema_node(schema), payload)]
    assert told in ([], ["it is nested too deeply to be checked"])


def test_check_that_would_take_for_ever_is_stopped() -> None:
    began = time.process_time()

    with pytest.raises(Refused, match="the check against the schema took too much time"):
        check_payload(schema_node(ENDLESS), "a" * 100 + "b")
    assert time.process_time() - began < 5
