import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.event_folds import merge_patch

values = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


# RFC 7396, appendix A, row by row.
def test_the_examples_of_the_rfc_hold() -> None:
    for target, patch, result in [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ]:
        assert merge_patch(target, patch) == result


@given(objects, objects)
def test_neither_is_modified(target: Any, patch: Any) -> None:
    before = copy.deepcopy((target, patch))
    result = merge_patch(target, patch)
    result["new"] = 1
    assert (target, patch) == before


@given(objects, objects)
def test_patching_twice_is_patching_once(target: Any, patch: Any) -> None:
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once


@given(objects)
def test_a_patch_of_nothing_changes_nothing_and_one_without_nulls_makes_itself(value: Any) -> None:
    assert merge_patch(value, {}) == value
    assert merge_patch({}, value) == value
