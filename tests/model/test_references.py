import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.builtin import META, collect_references, reference
from uwf_git.model.names import NodeHash

A, B, C = NodeHash("AAAAAAAAAAAAA"), NodeHash("BBBBBBBBBBBBB"), NodeHash("CCCCCCCCCCCCC")
REF = {"format": "cas_ref"}


def test_references_are_where_the_schema_says() -> None:
    for schema, payload, found in [
        (REF, reference(A), [A]),
        (REF, A, [A]),
        ({"properties": {"a": REF}}, {"a": reference(A), "b": reference(B)}, [A]),
        ({"additionalProperties": REF}, {"x": reference(A), "y": B}, [A, B]),
        ({"patternProperties": {"^a": REF}}, {"ab": A, "b": B}, [A]),
        ({"patternProperties": {"\\p{L}": REF}}, {"ab": A}, [A]),
        (
            {"properties": {"a": {}}, "additionalProperties": REF},
            {"a": reference(A), "b": reference(B)},
            [B],
        ),
        ({"items": REF}, [A, B, A], [A, B]),
        ({"prefixItems": [{}, REF], "items": REF}, [A, B, C], [B, C]),
        ({"items": [{}, REF], "additionalItems": REF}, [A, B, C], [B, C]),
        ({"contains": REF}, [A, "text"], [A]),
        ({"unevaluatedItems": REF}, [A], [A]),
        ({"unevaluatedProperties": REF}, {"a": A}, [A]),
        ({"dependentSchemas": {"a": {"properties": {"a": REF}}}}, {"a": A}, [A]),
        ({"anyOf": [{"type": "null"}, REF]}, A, [A]),
        ({"oneOf": [{"type": "null"}, REF]}, reference(A), [A]),
        ({"allOf": [{"properties": {"a": REF}}]}, {"a": A}, [A]),
        ({"if": {"properties": {"a": REF}}}, {"a": A}, [A]),
        ({"if": True, "then": {"properties": {"a": REF}}}, {"a": A}, [A]),
        ({"if": True, "else": {"properties": {"a": REF}}}, {"a": A}, [A]),
        ({"$ref": "#/$defs/r", "$defs": {"r": REF}}, A, [A]),
        ({"$ref": "#/$defs/a~1b~0c%20d", "$defs": {"a/b~c d": REF}}, A, [A]),
        ({"$ref": "#/anyOf/1", "anyOf": [{}, {"items": REF}]}, [A], [A]),
        ({"$ref": "#/anyOf/2", "anyOf": [{}, {}]}, A, []),
        ({"$ref": "#r", "$defs": {"deep": [{"$anchor": "r", **REF}]}}, A, [A]),
        ({"$dynamicRef": "#r", "$defs": {"r": {"$dynamicAnchor": "r", **REF}}}, A, [A]),
        ({"properties": {"v": REF, "next": {"$ref": "#"}}}, {"v": A, "next": {"v": B}}, [A, B]),
        ({"$ref": "#"}, A, []),
        ({"$ref": "#/nowhere/0"}, A, []),
        ({"$ref": "#nowhere"}, A, []),
        ({"$ref": "https://example.com/"}, A, []),
        ({"$ref": 5}, A, []),
        (True, A, []),
        ({"properties": 1, "patternProperties": [], "items": 3, "anyOf": 4}, {"a": A}, []),
    ]:
        assert collect_references(schema, payload) == found


def test_two_schemas_that_lead_to_each_other_cost_no_more_at_every_level() -> None:
    both = {"allOf": [{"$ref": "#/$defs/one"}, {"$ref": "#/$defs/other"}]}
    schema = {
        "$defs": {
            "one": {"properties": {"a": {**both}, "v": REF}},
            "other": {"properties": {"a": {**both}}},
        },
        **both,
    }
    payload: Any = {"v": A}
    for _level in range(100):
        payload = {"a": payload}
    before = time.process_time()
    assert collect_references(schema, payload) == [A]
    assert time.process_time() - before < 2


@given(
    st.recursive(
        st.none() | st.text() | st.sampled_from([A, B, META]),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abc"), inner),
        max_leaves=15,
    )
)
def test_a_schema_that_says_it_of_every_place_finds_every_name(payload: Any) -> None:
    everywhere = {**REF, "items": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}}
    found = collect_references(everywhere, payload)
    assert found == list(dict.fromkeys(names_in(payload)))


def names_in(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [name for item in value.values() for name in names_in(item)]
    if isinstance(value, list):
        return [name for item in value for name in names_in(item)]
    return [value] if value in (A, B, META) else []
