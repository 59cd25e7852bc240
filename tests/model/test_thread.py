import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.builtin import BUILTIN, SIGNAL
from uwf_git.model.limits import LIMITS
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import canonical
from uwf_git.model.schema_check import check_value
from uwf_git.model.thread import (
    ENDED,
    EVENTS,
    STATUSES,
    Amendment,
    Child,
    NotAPresent,
    Split,
    ThreadState,
    Try,
    Waiting,
    add_usage,
    build_signal,
    drop_unfit,
    find_unfit,
    parse_present,
    read_amendment,
)

PRESENTS = json.loads((Path(__file__).parent / "made_up" / "presents.json").read_text())


WORKFLOW, AGENT, OTHER = (NodeHash(letter * 13) for letter in "ABC")
BEGIN = ThreadState(workflow=WORKFLOW, binding={"developer": AGENT}, started_at=1000)
FULL = BEGIN._replace(
    role="developer",
    depth=2,
    state={"a": 1},
    visits={"developer": 2},
    attempts=1,
    last_attempt=OTHER,
    failures=1,
    usage={"tokens": 5},
    execution_ms=9,
    limits={"maxSteps": 9},
    hint="look again",
)
PAUSED = FULL._replace(waiting=Waiting("tester", 12), paused_from="waiting")
CHILD = ThreadId("01J00000000000000000000001")
IN_FLOW = FULL._replace(at="0.1/0", trying="0.1/1", waiting=Waiting("tester", at="0.1/1"))
TRIED = FULL._replace(tried=Try("0.1/1", 2, is_verdict=True, reason=WORKFLOW))
APART = FULL._replace(at="0", split=Split("1", (Child(CHILD, WORKFLOW),)))


def test_the_words_of_the_format_are_these() -> None:
    assert " ".join(STATUSES) == "ready waiting split paused failed completed killed"
    assert " ".join(EVENTS) == (
        "start step attempt wait answer pause resume retry patch amend poke fork split join end "
        "kill"
    )
    assert {"completed", "killed"} == ENDED


def test_attempts_are_those_at_one_place() -> None:
    assert IN_FLOW.begin_tries("0.1/1") == IN_FLOW
    assert IN_FLOW.begin_tries(None) == IN_FLOW
    assert FULL.begin_tries("0.1/0") == FULL
    begun = IN_FLOW.begin_tries("0.2/0")
    assert (begun.attempts, begun.last_attempt, begun.failures, begun.trying) == (0, None, 0, None)


def test_position_is_where_the_thread_stands_and_whom_it_waits_for() -> None:
    here = FULL._replace(role="developer", waiting=None)
    assert here.find_gone_role({"developer": 1}) is None
    assert here.find_gone_role({"tester": 1}) == "developer"
    assert here._replace(role="$START").find_gone_role({}) is None
    assert here._replace(waiting=Waiting("tester")).find_gone_role({"developer"}) == "tester"


@pytest.mark.parametrize(
    "present", [BEGIN, FULL, PAUSED, FULL._replace(waiting=Waiting("a")), IN_FLOW, APART, TRIED]
)
def test_what_was_written_reads_back(present: ThreadState) -> None:
    assert parse_present(json.loads(json.dumps(present.as_document()))) == present


@pytest.mark.parametrize("document", [None, 1, "text", [], {}, {"workflow": {"$ref": WORKFLOW}}])
def test_something_else_is_no_present(document: Any) -> None:
    with pytest.raises(NotAPresent):
        parse_present(document)


@pytest.mark.parametrize(("field", "value"), PRESENTS["of another kind"], ids=str)
def test_a_field_of_another_kind_is_no_present(field: str, value: Any) -> None:
    with pytest.raises(NotAPresent):
        parse_present({**FULL.as_document(), field: value})


A, B = NodeHash("8FWKR3TN5V1QA"), NodeHash("7BQST3VW9F2MA")

amendments = st.builds(
    Amendment,
    workflow=st.none() | st.just(A),
    binding=st.dictionaries(st.sampled_from(["writer", "checker"]), st.just(B)),
    limits=st.dictionaries(st.sampled_from(sorted(LIMITS)), st.none() | st.integers(0, 99)),
)


@given(amendments)
def test_amendment_reads_back_and_keeps_to_its_schema(amendment: Amendment) -> None:
    signal = build_signal("amend", timestamp=5, amendment=amendment)

    assert read_amendment(signal.payload) == amendment
    assert check_value(BUILTIN[SIGNAL].payload, signal.payload) == []


numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
reports = st.dictionaries(
    st.sampled_from("abc"),
    numbers | st.booleans() | st.text(max_size=2) | st.dictionaries(st.sampled_from("xy"), numbers),
)


@pytest.mark.parametrize(("total", "report", "result"), PRESENTS["add_usage"])
def test_numbers_add_up_and_the_rest_is_replaced(total: Any, report: Any, result: Any) -> None:
    assert add_usage(total, report) == result


@pytest.mark.parametrize("number", [1e308, 10**400])
def test_a_sum_beyond_all_floats_can_still_be_written_down(number: float) -> None:
    assert add_usage({"cost": number}, {"cost": 1e308}) == {"cost": sys.float_info.max}
    assert add_usage({"cost": -1e308}, {"cost": -1e308}) == {"cost": -sys.float_info.max}


@given(reports, reports)
def test_the_total_is_json_and_the_parts_stay_as_they_were(total: Any, report: Any) -> None:
    before = json.dumps([total, report])
    json.dumps(add_usage(total, report), allow_nan=False)
    # As it is read again: else the commit that is written from memory is not what follows.
    summed = add_usage(canonical(total), canonical(report))
    assert json.dumps(summed) == json.dumps(canonical(summed))
    assert json.dumps([total, report]) == before


@pytest.mark.parametrize("amount", [-1, -0.01, -(10**400), True, "5", [1], {"a": 1}])
@pytest.mark.parametrize("name", ["inputTokens", "outputTokens", "costUsd"])
def test_amount_that_would_lower_a_sum_is_unfit(name: str, amount: Any) -> None:
    assert name in str(find_unfit({"inputTokens": 1, name: amount}))
    assert drop_unfit({"inputTokens": 1, "turns": 2, name: amount}) == (
        {"turns": 2} if name == "inputTokens" else {"inputTokens": 1, "turns": 2}
    )
