"""Laziness must be invisible: every way to read the context returns what a plain dict would."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from uwf_git.engine.lazy_list import LazyContext

KNOWN = {"role": "reviewer", "meta": {"approved": False}, "depth": 3}
STEPS = [{"role": "planner", "meta": {}}, {"role": "developer", "meta": {"ok": True}}]
PLAIN = {**KNOWN, "history": STEPS}


class Loader:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> list[dict[str, Any]]:
        self.calls += 1
        return list(STEPS)


def lazy() -> tuple[LazyContext, Loader]:
    loader = Loader()
    return LazyContext(KNOWN, loader), loader


READS_WITHOUT_HISTORY: dict[str, Callable[[dict[str, Any]], Any]] = {
    "subscript": lambda context: context["meta"],
    "get": lambda context: context.get("meta"),
    "get of a missing key": lambda context: context.get("nothing", 7),
    "membership": lambda context: ("history" in context, "nothing" in context),
    "length": len,
    "truth": bool,
    "names": list,
    "names backwards": lambda context: list(reversed(context)),
    "keys": lambda context: list(context.keys()),
    "keys equal": lambda context: context.keys() == PLAIN.keys(),
}

READS_OF_ALL: dict[str, Callable[[dict[str, Any]], Any]] = {
    "subscript": lambda context: context["history"],
    "get": lambda context: context.get("history"),
    "values": lambda context: list(context.values()),
    "items": lambda context: list(context.items()),
    "copy": lambda context: context.copy(),
    "dict": dict,
    "unpacked": lambda context: {**context},
    "as keywords": lambda context: dict(**context),
    "merged into another": lambda context: {"own": 1} | context,
    "merged with another": lambda context: context | {"own": 1},
    "updates another": lambda context: (other := {"own": 1}, other.update(context)) and other,
    "equal": lambda context: context == PLAIN,
    "equal the other way": lambda context: PLAIN == context,  # noqa: SIM300 (the other operand asks)
    "unequal": lambda context: context != PLAIN,
    "in a list": [PLAIN].index,
    "json": json.dumps,
    "indented json": lambda context: json.dumps(context, indent=2),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickled": lambda context: pickle.loads(pickle.dumps(context)),
}


@pytest.mark.parametrize("name", READS_WITHOUT_HISTORY)
def test_reading_anything_but_the_history_does_not_load_it(name: str) -> None:
    read = READS_WITHOUT_HISTORY[name]
    context, loader = lazy()
    assert read(context) == read(PLAIN)
    assert (loader.calls, context.is_loaded) == (0, False)


@pytest.mark.parametrize("name", READS_OF_ALL)
def test_reading_the_history_in_any_way_loads_it_once(name: str) -> None:
    read = READS_OF_ALL[name]
    context, loader = lazy()
    assert read(context) == read(PLAIN)
    assert read(context) == read(PLAIN)
    assert (loader.calls, context.is_loaded) == (1, True)


@pytest.mark.parametrize(
    "change",
    [
        lambda context: context.update(role="x"),
        lambda context: context.pop("history"),
        lambda context: context.popitem(),
        lambda context: context.setdefault("history", []),
        lambda context: context.clear(),
        lambda context: context.__setitem__("role", "x"),
        lambda context: context.__delitem__("role"),
        lambda context: context.__ior__({"role": "x"}),
    ],
)
def test_nothing_changes_a_context(change: Callable[[LazyContext], Any]) -> None:
    context, _ = lazy()
    with pytest.raises(TypeError, match="cannot be changed"):
        change(context)
    assert context == PLAIN


def test_showing_a_context_does_not_load_it() -> None:
    context, loader = lazy()
    assert "history not loaded" in repr(context)
    assert loader.calls == 0
    assert context["history"]
    assert "not loaded" not in repr(context)
