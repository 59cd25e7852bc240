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

WRONG = Path(__file__).parent / "made_up" / "wrong_conditions.json"
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

TRUE = [
    "meta.approved = false",
    "$not($exists(meta.needsClarification))",
    "meta.none = null",
    "null in meta.list",
    "meta.missing ?: true",
    "meta.count = 1.0",
    '$string(meta.count) = "1"',
    "true",
    '"a" in meta.tags',
    "$contains(prompt, /LOGIN/i)",
    'history[-1].role = "developer"',
    "(meta ~> |$|{'approved': true}|).approved",
    "iteration <= 1 and state.errors = 0",
    '$toMillis("2020-01-01T00:00:00Z") < startTime',
    '$toMillis("2020", "[Y]") < startTime',
    '$toMillis("5 May 2020", "[D] [MNn] [Y]") < startTime',
]

FALSE = [
    "meta.missing = false",
    "meta.missing != true",
    "meta.none",
    "meta.yes = 1",
    '"1" = 1',
    "meta.zero",
    "meta.empty",
    "meta.object",
    '""',
    "[0, 0]",
    "$sum",
    "/a/",
    "meta.empty[0]",
]


def test_a_condition_holds_as_jsonata_says() -> None:
    for condition in TRUE:
        assert check_condition(condition) is None
        assert evaluate_condition(condition, CONTEXT) is True


def test_a_condition_does_not_hold_as_jsonata_says() -> None:
    for condition in FALSE:
        assert check_condition(condition) is None
        assert evaluate_condition(condition, CONTEXT) is False


# Where jsonata 0.7.1 answers otherwise; the answers are those of JSONata 2.2.2 on node.
SAME_AS_JAVASCRIPT = [
    "(-5 ?: 99) = -5",
    "(-5 ?? 99) = -5",
    "([1, 2, 3][-1] ?: 42) = 3",
    "([1, 2, 3][-1] ?? 42) = 3",
    "(meta.missing ?: meta.lacking ?: 4) = 4",
    "$not(1 in [true])",
    "$not(true in [1])",
    '$not({"a": 1} in [{"a": 1}])',
    "meta.object in [meta.object]",
    "$count($distinct([1, true, 1.0, '1', false, 0])) = 5",
    "$count(meta.none) = 1",
    "-5.5 % 2 = -1.5",
    "$count($map(meta.none, function($v) { 1 })) = 1",
    "$zip(meta.none, [1]) = [[null, 1]]",
    "$reverse(meta.none) = [null]",
    "$sort(meta.none) = [null]",
    "$count($distinct([[1, 2], [1, 2]])) = 1",
    "$string($distinct([prompt, prompt])) = '[\"Fix the login\"]'",
    "$lowercase('Gie\u00dfen') = 'gie\u00dfen'",
    "$split('task kit', /\\W+/i) = ['task', 'kit']",
    "$formatNumber(2.675, '0.00') & $formatNumber(2.5, '0') = '2.682'",
    "$formatNumber(0.575, '0%') & $formatNumber(-0.125, '0.00') = '57%-0.12'",
    "$formatInteger(-1.5, '0') = '-2'",
    "$sort([3, 1, 2], function($a, $b) { $a > $b ? 1 : 0 }) = [1, 2, 3]",
    "$sort([3, 1, 2], function($a, $b) { $a - $b }) = [2, 1, 3]",
    "$sort([3, 1, 2], function($a, $b) { [] }) = [2, 1, 3]",
    "$sort([3, 1, 2], function($a, $b) { null }) = [3, 1, 2]",
    "$sort([{'a': 1, 'i': 1}, {'a': 1, 'i': 2}], function($x, $y) { $x.a >= $y.a })[0].i = 2",
    "$string(1e20) = '100000000000000000000'",
    "$string(1e21) = '1e+21'",
    "$string(1.5e-7) = '1.5e-7'",
    "$string(5e-324) = '5e-324'",
    "$string(0.000001) = '0.000001'",
    "$string([0.1 + 0.2, 4 / 2, null]) = '[0.3,2,null]'",
    """'x' & {'é': 'é'} = 'x{"é":"é"}'""",
    "$string({'a': [1], 'b': {}}, true) = '{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}'",
    '$string("\\uD800") = "\\uD800"',
    """$string(["\\uD800"]) = '["\\\\ud800"]'""",
    '$length("\\uD834\\uDD1E") = 1',
    "$replace('abc', /b/, '\\\\1') = 'a\\\\1c'",
    "$replace('abc', 'b', '$0') = 'a$0c'",
    "$replace('abab', /a/, 'aa', 2) = 'aabaab'",
    "$replace('abab', /a/, function($m) { $string($m.start) & $string($m.end) }) = '01b23b'",
    "$replace('x=1', /x=(\\d)/, function($m) { $m.groups[0] }) = '1'",
    "$replace('abab', /a/, function($m) { 'z' }, 1) = 'zbab'",
    "/x(a)/('xa').groups[0] = 'a'",
    "/a/('aa').next().start = 1",
    "$split('a1b2c', /(\\d)/) = ['a', 'b', 'c']",
    "$split('a1b2c', /\\d/, 2) = ['a', 'b']",
    "$number('0X1F') + $number('0b11') + $number('0o17') = 49",
    "$toMillis('2018-02') = 1517443200000",
    "$toMillis('2018-02-03T11:15:33.1239+01:30') = 1517651133123",
    "$toMillis('1969-12-31T23:59:59.9995Z') = -1",
]


def test_an_answer_is_the_one_of_jsonata_in_javascript() -> None:
    for condition in SAME_AS_JAVASCRIPT:
        assert check_condition(condition) is None
        assert evaluate_condition(condition, CONTEXT) is True


def refusal(condition: str) -> Refused | None:
    try:
        evaluate_condition(condition, CONTEXT)
    except Refused as error:
        return error
    return None


def test_what_is_wrong_with_a_condition_is_told(golden: Callable[[str, str], None]) -> None:
    told: list[str] = []
    for about, conditions in json.loads(WRONG.read_text()).items():
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


LAZY = [
    "meta.approved = true",
    "meta",
    "meta.*",
    "$keys($)",
    "$exists($)",
    "$count($)",
    "depth = 3 and role = 'reviewer'",
    "state.history",
    "$lookup($, 'meta')",
    "$type($)",
    "$$ in [$]",
]

TOUCHING = [
    "history[-1].role = 'developer'",
    "$$.history",
    "*",
    "**",
    "*.role",
    "$string($$)",
    "$length($string($)) > 300",
    "$lookup($$, 'his' & 'tory')",
    "$spread($)[3]",
    "$zip(history, [1])",
    "$ = $",
    "$each($, function($v) { $v })",
    "($f := $sift; $f(function($v, $k) { $k = 'history' }))",
    "$merge([$, {'a': 1}]).history",
    "$clone($).history",
    "($ ~> |$|{'role': 'x'}|).history",
    "history.%.role",
    "$count(history)",
    "`history`[0]",
]


def lazily(condition: str) -> tuple[bool, set[int]]:
    read: set[int] = set()

    def load(place: int) -> Any:
        read.add(place)
        return STEPS[place]

    return evaluate_condition(condition, CONTEXT | {"history": lazy_list(len(STEPS), load)}), read


@pytest.mark.parametrize("condition", LAZY)
def test_a_condition_that_does_not_reach_for_history_reads_no_step(condition: str) -> None:
    assert lazily(condition) == (evaluate_condition(condition, CONTEXT), set())


def test_a_condition_that_reaches_for_history_agrees() -> None:
    for condition in TOUCHING:
        assert lazily(condition)[0] == evaluate_condition(condition, CONTEXT)


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


@pytest.mark.parametrize(
    "source",
    [
        "($f := function($x){$x}; $f(1))",
        "$map(history, function($v, $i){$v.meta.ok})",
        "history@$h#$i.($h.role = 'x' and $i > 0)",
        "history[role = 'a']#$i[$i = 1].meta.v = 3",
        "$$.depth > 1 and $count(history[$.role = 'a']) = 1",
    ],
)
def test_names_that_a_condition_binds_itself_are_its_own(source: str) -> None:
    assert check_condition(source) is None
