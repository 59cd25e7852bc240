"""Frozen values are read as any dict and list, and changed by nothing."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.node import canonical
from uwf_git.model.workflow import FrozenDict, FrozenList, freeze

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)

_CHANGES: dict[str, Callable[[Any], object]] = {
    "dict item": lambda value: value.__setitem__("a", 1),
    "dict del": lambda value: value.__delitem__("list"),
    "dict |=": lambda value: value.__ior__({}),
    "dict clear": lambda value: value.clear(),
    "dict pop": lambda value: value.pop("list"),
    "dict popitem": lambda value: value.popitem(),
    "dict setdefault": lambda value: value.setdefault("a", 1),
    "dict update": lambda value: value.update(a=1),
    "list item": lambda value: value["list"].__setitem__(0, 1),
    "list del": lambda value: value["list"].__delitem__(0),
    "list +=": lambda value: value["list"].__iadd__([1]),
    "list *=": lambda value: value["list"].__imul__(2),
    "list append": lambda value: value["list"].append(1),
    "list clear": lambda value: value["list"].clear(),
    "list extend": lambda value: value["list"].extend([1]),
    "list insert": lambda value: value["list"].insert(0, 1),
    "list pop": lambda value: value["list"].pop(),
    "list remove": lambda value: value["list"].remove({"b": 2}),
    "list reverse": lambda value: value["list"].reverse(),
    "list sort": lambda value: value["list"].sort(),
    "deep": lambda value: value["list"][0].update(b=3),
}


@given(_JSON)
def test_frozen_value_reads_as_the_value(value: Any) -> None:
    frozen = freeze(value)

    assert frozen == value
    assert json.dumps(frozen) == json.dumps(value)
    assert canonical(frozen) == canonical(value)
    assert freeze(frozen) == value
    for made in (copy.deepcopy(frozen), pickle.loads(pickle.dumps(frozen))):
        assert made == value
    assert type(copy.deepcopy(frozen)) is type(value)


@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
def test_frozen_value_refuses_every_change(change: Callable[[Any], object]) -> None:
    value = freeze({"list": [{"b": 2}]})

    with pytest.raises(TypeError, match="is shared and cannot be changed"):
        change(value)
    assert value == {"list": [{"b": 2}]}


def test_every_method_that_changes_is_refused() -> None:
    """A method that a later Python adds would be found here."""
    for frozen, plain in ((FrozenDict, dict), (FrozenList, list)):
        own = {name for name in vars(plain) if vars(frozen).get(name) is not None}
        reading = {name for name in vars(plain) if name not in own and not name.startswith("__")}
        assert reading <= {"copy", "count", "fromkeys", "get", "index", "items", "keys", "values"}


def test_copy_can_be_changed() -> None:
    value = freeze({"list": [{"b": 2}]})
    for made in (copy.copy(value), copy.deepcopy(value), value.copy(), {**value}, value | {}):
        made["new"] = 1
    copied = copy.copy(value["list"])
    copied.append(1)

    assert value == {"list": [{"b": 2}]}
