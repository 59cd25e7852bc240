from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.builtin import BUILTIN, SIGNAL
from uwf_git.model.limits import LIMITS
from uwf_git.model.names import NodeHash
from uwf_git.model.schema_check import check_value
from uwf_git.model.thread import Amendment, build_signal, read_amendment

A, B = NodeHash("8FWKR3TN5V1QA"), NodeHash("7BQST3VW9F2MA")

amendments = st.builds(
    Amendment,
    workflow=st.none() | st.just(A),
    binding=st.dictionaries(st.sampled_from(["writer", "checker"]), st.just(B)),
    limits=st.dictionaries(st.sampled_from(sorted(LIMITS)), st.none() | st.integers(0, 99)),
)


def test_signal_says_no_more_than_was_asked() -> None:
    assert build_signal("pause", timestamp=5).payload == {"action": "pause"}
    patched = build_signal("patch", timestamp=5, reason="too slow", patch={"a": None})
    assert patched.payload == {"action": "patch", "reason": "too slow", "patch": {"a": None}}
    assert (patched.type, patched.timestamp) == (SIGNAL, 5)


@given(amendments)
def test_amendment_reads_back_and_keeps_to_its_schema(amendment: Amendment) -> None:
    signal = build_signal("amend", timestamp=5, amendment=amendment)

    assert read_amendment(signal.payload) == amendment
    assert check_value(BUILTIN[SIGNAL].payload, signal.payload) == []


@pytest.mark.parametrize(
    "payload",
    [{"action": "fly"}, {}, {"action": "amend", "limits": {"maxSteps": -1}}, {"action": 1}],
)
def test_invalid_payload_is_no_signal(payload: Any) -> None:
    assert check_value(BUILTIN[SIGNAL].payload, payload) != []
