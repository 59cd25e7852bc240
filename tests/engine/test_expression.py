"""The tables of answers were compared with JSONata 2.2.2 (JavaScript), condition by condition."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import raising, refuses

from uwf_git.engine.expression import SOURCE_BYTES, check_condition, evaluate_condition
from uwf_git.engine.moderator import lazy_list
from uwf_git.errors import Refused, StoreDamaged

MADE_UP = Path(__file__).parent / "made_up"
CONDITIONS: dict[str, list[str]] = json.loads((MADE_UP / "conditions.json").read_text())
STEPS = [{"role": "planner", "meta": {"plan": ["x"]}}, {"role": "developer", "meta": {"ok": True}}]
CONTEXT: dict[str, Any] = {
    "role": "reviewer",
    "meta": {
        "approved": False,
        "yes": True,
        "count": 1.0,
        "none": None,
        "list": [None, 1],
        "empty": [],
        "tags": ["a", "b"],
        "zero": 0,
        "half": 0.5,
        "object": {},
        "text": "abc",
        "deep": [{"y": 1}, {"y": None}],
    },
    "depth": 3,
    "history": STEPS,
    "state": {"errors": 0},
    "prompt": "Fix the login",
    "iteration": 1,
    "startTime": 1_700_000_000_000,
}


@pytest.mark.parametrize("about", CONDITIONS)
def test_a_condition_holds_as_jsonata_says(about: str) -> None:
    for condition in CONDITIONS[about]:
        assert check_condition(condition) is None
        if about.startswith(("true", "false")):
            assert evaluate_condition(condition, CONTEXT) is about.startswith("true"), condition


def refusal(condition: str) -> Refused | None:
    try:
        evaluate_condition(condition, CONTEXT)
    except Refused as error:
        return error
    return None


def test_what_is_wrong_with_a_condition_is_told(golden: Callable[[str, str], None]) -> None:
    told: list[str] = []
    for about, conditions in json.loads((MADE_UP / "wrong_conditions.json").read_text()).items():
        told += [f"# {about}", ""]
        for condition in conditions:
            told.append(f"> {json.dumps(condition)}")
            checked, error = check_condition(condition), refusal(condition)
            told += [] if checked is None else [f"read: {checked}"]
            if error is not None:
                assert (error.code, error.exit_status) == ("condition-failed", 1)
                assert error.message.isprintable()
                assert error.facts["condition"] == condition
                assert error.hint
                problem = error.facts["problem"]
                told.append(f"asked: {'the same' if problem == checked else problem}")
            told.append("")
    golden("conditions.txt", "\n".join(told))


def test_a_condition_that_is_too_long_is_told_in_bytes() -> None:
    for letters in ("ab", "\u00e9"):
        told = check_condition(letters * (SOURCE_BYTES // 2 + 1))
        assert told == "it is too long (16386 bytes, at most 16384)"


@pytest.mark.parametrize(
    "condition",
    [
        "(" * 300 + "1" + ")" * 300,
        "[" * 5000,
        "{'a':" * 3000,
        "-" * 8000 + "1",
        "a?b:" * 3000 + "c",
        " or ".join(["a"] * 1500),
        "function($x){" * 900 + "1" + "}" * 900,
    ],
)
def test_nesting_is_bounded_long_before_pythons_stack_is(condition: str) -> None:
    assert check_condition(condition) == "it nests too deeply (at most 200 levels)"


def test_recursion_ends_at_500_levels_which_are_some_160_calls() -> None:
    counting = "($f := function($n) {{ $n = 0 ? 0 : 1 + $f($n - 1) }}; $f({0}) = {0})"

    assert evaluate_condition(counting.format(150), {})
    with refuses("condition-failed", match="at most 500 levels"):
        evaluate_condition(counting.format(170), {})


@pytest.mark.parametrize("picture", ["[H]:[m]", "[H[Y]:[m]", "[[Y][H]:[m]", "[M]-[D]"])
def test_a_date_that_todays_date_would_complete_is_refused(picture: str) -> None:
    with refuses("condition-failed", match="depends on today"):
        evaluate_condition(f"$toMillis('12:30', '{picture}') > 0", {})


def test_running_out_of_memory_and_stack_are_failures_as_any_other() -> None:
    with refuses("condition-failed", match="ran out of memory"):
        evaluate_condition("true and history", {"history": lazy_list(1, raising(MemoryError()))})
    with refuses("condition-failed", match="recurses too deeply"):
        evaluate_condition("history", {"history": lazy_list(1, raising(RecursionError()))})


@pytest.mark.parametrize(
    "condition", ["history", "true and history", "$map([1], function(){ history })"]
)
def test_a_damaged_store_is_not_mistaken_for_a_bad_condition(condition: str) -> None:
    damage = StoreDamaged("node 4KNM2PXR3B1QW is not what its name says")
    with pytest.raises(StoreDamaged, match="4KNM2PXR3B1QW"):
        evaluate_condition(condition, {"history": lazy_list(1, raising(damage))})


def lazily(condition: str) -> tuple[bool, set[int]]:
    read: set[int] = set()

    def load(place: int) -> Any:
        read.add(place)
        return STEPS[place]

    return evaluate_condition(condition, CONTEXT | {"history": lazy_list(len(STEPS), load)}), read


def test_a_condition_that_does_not_reach_for_history_reads_no_step() -> None:
    for condition in CONDITIONS["reads no step"]:
        assert lazily(condition) == (evaluate_condition(condition, CONTEXT), set()), condition
    for condition in CONDITIONS["reads a step"]:
        assert lazily(condition)[0] == evaluate_condition(condition, CONTEXT), condition


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(value=json_values)
def test_every_value_equals_itself_and_survives_its_reading(value: Any) -> None:
    context = {"meta": {"value": value}}
    before = json.dumps(context)
    assert evaluate_condition("$ = $$ and meta.value = $$.meta.value", context)
    assert json.dumps(context) == before


@settings(deadline=None)
@given(value=json_values)
def test_a_whole_number_routes_the_same_however_it_was_stored(value: Any) -> None:
    def as_floats(each: Any) -> Any:
        if isinstance(each, int) and not isinstance(each, bool):
            return float(each)
        if isinstance(each, list):
            return [as_floats(one) for one in each]
        if isinstance(each, dict):
            return {key: as_floats(one) for key, one in each.items()}
        return each

    condition = "($s := $string(meta); $length($s) % 2 = 0)"
    assert evaluate_condition(condition, {"meta": value}) == evaluate_condition(
        condition, {"meta": as_floats(value)}
    )


@settings(deadline=None)
@given(source=st.text(max_size=40) | st.text("$a1'\"[](){}<>=!~?:;,.|@#^%&*/+-\\ \n", max_size=40))
def test_any_text_is_either_a_condition_or_has_a_problem_of_one_line(source: str) -> None:
    told = check_condition(source)
    if told is not None:
        assert told.isprintable()
    # An undefined name would have an answer in JSONata: undefined.
    if told is not None and "not defined" not in told:
        with refuses("condition-failed"):
            evaluate_condition(source, CONTEXT)
