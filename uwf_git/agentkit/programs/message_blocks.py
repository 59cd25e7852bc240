"""Read records that hold messages of Anthropic's API in blocks, as claude and qwen print them."""

from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.agentkit.extraction.adapter import AdapterQuestion
from uwf_git.agentkit.extraction.records import find, tool_event
from uwf_git.agentkit.extraction.role_object import read_answer


def _blocks(record: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    """List the blocks of one kind in a message; [] for an error of the endpoint."""
    blocks = find(record, list, "message", "content") or []
    is_error = record.get("is_api_error_message") is True
    return [] if is_error else [block for block in blocks if find(block, str, "type") == kind]


def find_last_text(records: list[dict[str, Any]]) -> str:
    """Return its own last text, not the text of a sub-agent."""
    for record in reversed(records):
        if record.get("type") == "assistant" and not record.get("parent_tool_use_id"):
            text = "".join(find(block, str, "text") or "" for block in _blocks(record, "text"))
            if text.strip():
                return text
    return ""


def read_result(
    result: Mapping[str, Any], key: str, records: list[dict[str, Any]], question: AdapterQuestion
) -> tuple[str, Any]:
    """Return the text, unless of a failure, and the meta, at *key*, of the final record."""
    value = find(result, dict, key)
    said, meta = "", value
    if value is None and result.get("is_error") is False:
        said = find(result, str, "result") or ""
    elif value is not None and question.schema is not None:
        # Even if it does not fit, it was meant as the fields.
        said, meta = read_answer(value, question.schema) or ("", value)
    return said if said.strip() else find_last_text(records), meta


def read_trace(
    records: list[dict[str, Any]], result: Mapping[str, Any] | None, *, without: str
) -> Iterator[Mapping[str, Any]]:
    """Yield its messages, its tools (but the one *without*), its retries and its refusals."""
    done = {
        find(block, str, "tool_use_id"): block
        for record in records
        if record.get("type") == "user"
        for block in _blocks(record, "tool_result")
    }
    for record in records:
        if record.get("subtype") == "api_retry":
            yield {"type": "warning", "message": f"tried again: {record.get('error')}"}
        if record.get("type") != "assistant":
            continue
        for block in _blocks(record, "text"):
            yield {"type": "message", "text": block.get("text")}
        for block in _blocks(record, "tool_use"):
            name, given = block.get("name"), block.get("input")
            end = done.get(find(block, str, "id"), {})
            if name != without:
                is_good = bool(end) and end.get("is_error") is not True
                yield tool_event(name, given, end.get("content"), ok=is_good)
    for denial in find(result, list, "permission_denials") or []:
        tool, asked = find(denial, str, "tool_name"), find(denial, dict, "tool_input")
        yield {"type": "permission", "name": tool, "allowed": False, "input": asked}
