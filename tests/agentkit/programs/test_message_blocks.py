from typing import Any

from agentkit.adapters.reading import NOWHERE
from agentkit.adapters.replay import SCHEMA, end, replay

from uwf_git.agentkit.extraction.adapter import parse_lines
from uwf_git.agentkit.programs.failures import find_last_text, read_result, read_trace


def said(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"content": content}, **more}


def test_last_text_is_its_own_and_stands_for_an_empty_result() -> None:
    records = [said("First."), said("Last."), said(" "), said("Not I.", parent_tool_use_id="t1")]
    question = end(NOWHERE, schema=SCHEMA).question

    assert find_last_text(records) == "Last."
    for result in ({"is_error": False, "result": ""}, {"is_error": True, "result": "no luck"}):
        assert read_result(result, "object", records, question) == ("Last.", None)
    odd = {"is_error": False, "object": {"other": 1}}
    assert read_result(odd, "object", records, question) == ("Last.", {"other": 1})


def test_retries_are_reported_and_errors_of_the_endpoint_are_no_words() -> None:
    records = parse_lines(replay(NOWHERE, "claude", "error-500").run.stdout)

    trace = list(read_trace(records, None, without=""))

    assert {"type": "warning", "message": "tried again: server_error"} in trace
    assert "message" not in [event["type"] for event in trace]
