import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.agentkit.turn import AgentResult, print_result
from uwf_git.agents.command_line import parse_reply


@given(text=st.text("ab\ud83d\ude00é"), session=st.none() | st.text(st.characters(codec="utf-8")))
def test_engine_reads_what_the_kit_prints(text: str, session: str | None) -> None:
    stream = io.BytesIO()
    print_result(AgentResult([text], text, session=session), stream)
    reply = parse_reply(stream.getvalue(), protocol="positional")

    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert (reply.meta, reply.content, reply.session) == ([whole], whole, session)


@pytest.mark.parametrize(
    ("meta", "problem"),
    [
        ({"n": float("nan")}, "not JSON compliant"),
        ({"s": {1, 2}}, "set is not JSON serializable"),
        ({(1, 2): 3}, "keys must be str"),
    ],
)
def test_value_that_json_does_not_have_is_reported_and_not_printed(meta: Any, problem: str) -> None:
    stream = io.BytesIO()

    with refuses("unprintable-result", match=problem):
        print_result(AgentResult(meta, ""), stream)

    assert stream.getvalue() == b""
