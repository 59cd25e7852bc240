import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.diff import ValueChange, diff_values, render_path

SCALARS = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "b"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from("xyz"), inner),
    max_leaves=12,
)


def spelled(value: Any) -> str:
    """Distinguish true from 1, which Python does not."""
    return json.dumps(value, sort_keys=True)


def applied(value: Any, changes: list[ValueChange]) -> Any:
    """Remove what was removed, then set what was added or changed."""
    holder = {"": copy.deepcopy(value)}
    for change in reversed([each for each in changes if each.kind == "removed"]):
        parent, key = place(holder, change)
        assert spelled(parent[key]) == spelled(change.before)
        del parent[key]
    for change in changes:
        if change.kind == "added":
            parent, key = place(holder, change)
            if isinstance(parent, list):
                parent.insert(key, change.after)
            else:
                assert key not in parent
                parent[key] = change.after
    for change in changes:
        if change.kind == "changed":
            parent, key = place(holder, change)
            assert spelled(parent[key]) == spelled(change.before)
            parent[key] = change.after
    return holder[""]


def place(holder: Any, change: ValueChange) -> tuple[Any, Any]:
    *way, key = ("", *change.path)
    for part in way:
        holder = holder[part]
    return holder, key


@given(VALUES, VALUES)
def test_changes_make_the_other_value_of_the_one(one: Any, other: Any) -> None:
    assert spelled(applied(one, diff_values(one, other))) == spelled(other)


@given(VALUES, VALUES)
def test_there_are_changes_exactly_where_values_differ(one: Any, other: Any) -> None:
    assert (diff_values(one, other) == []) is (spelled(one) == spelled(other))


def test_places_are_reported_as_people_would() -> None:
    one = {"ok": False, "phases": [{"name": "a", "n": 1}, {"name": "b"}], "old": 1}
    other = {"ok": 0, "phases": [{"name": "new"}, {"name": "a", "n": 2}, {"name": "b"}], "more": []}

    told = [(change.kind, render_path(change.path)) for change in diff_values(one, other)]

    assert told == [
        ("changed", "ok"),
        ("changed", "phases[0].name"),
        ("removed", "phases[0].n"),
        ("added", "phases[1]"),
        ("removed", "old"),
        ("added", "more"),
    ]


def test_element_put_in_front_changes_no_other() -> None:
    assert diff_values([1, 2, 3], [0, 1, 2, 3]) == [ValueChange("added", (0,), None, 0)]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ((), ""),
        (("a", 0, "b"), "a[0].b"),
        ((2, "a"), "[2].a"),
        (("a.b", 'c"', "", " "), '["a.b"]["c\\""][""][" "]'),
    ],
)
def test_path_is_written_without_doubt(path: tuple[str | int, ...], told: str) -> None:
    assert render_path(path) == told


def test_values_of_any_depth_are_compared() -> None:
    one: Any = 1
    other: Any = 2
    for _ in range(499):
        one, other = [one], [other]

    assert [change.kind for change in diff_values([one, 1], [other, 2])] == ["changed"] * 2
    assert diff_values(one, json.loads(json.dumps(one))) == []
