"""uwf-claude: Claude Code plays a role.

Only its record `result` is the verdict. Its subtype is "success" even when the endpoint failed
(``is_error`` says so), its exit status is 0 when it was interrupted, and a success may lack the
object that was requested.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.agentkit.extraction.adapter import (
    AdapterAnswer,
    AdapterQuestion,
    AskFailed,
    FailureKind,
)
from uwf_git.agentkit.extraction.records import build_usage, find, find_last, parse_lines
from uwf_git.agentkit.extraction.role_object import add_guide, read_answer
from uwf_git.agentkit.programs.command_adapter import (
    CommandAdapter,
    EndedProgram,
    ProgramCall,
    adapter_main,
)
from uwf_git.agentkit.programs.deciding_files import find_store_pattern
from uwf_git.agentkit.programs.failures import (
    explain_no_record,
    explain_words,
    require_good_end,
    with_reset,
)
from uwf_git.agentkit.programs.mcp_config import SERVER, find_mcp_entry, mcp_servers_json
from uwf_git.agentkit.programs.options import (
    MCP_KEYS,
    find_object_schema,
    option,
    schema_keys,
)
from uwf_git.agentkit.settings import split_args
from uwf_git.plan.hook_forms import list_words_of_turn

_ABOUT = """\
Play roles with Claude Code (`claude -p`), in the thread's work directory.

What it may do (--permission); nothing is asked, since no person is there to answer:
  acceptEdits         read, and edit files in the work directory; of commands only those
                      that it takes to be harmless. The default; the trace tells what
                      was refused.
  dontAsk             what its own settings allow, and nothing else
  plan                read only
  auto                whatever a check on Anthropic's servers lets pass
  bypassPermissions   everything that you may do; it refuses to start as root, unless
                      IS_SANDBOX=1 says that it is in a sandbox
Its file tools do not write in the store.
To allow some commands more: --args '--allowedTools "Bash(npm test:*)"'.
"""

_KEYS = {**schema_keys("its own --json-schema"), **MCP_KEYS}

_PERMISSION = "acceptEdits"

# It retries 401 too, with waits that double.
_RETRIES = "2"

# One argument holds 128 KiB on Linux.
_LONGEST_SCHEMA = 100_000

_STRUCTURED = "StructuredOutput"

_ALLOW = "uwf.claude.permission says what it may do; see uwf-claude --help"
_LOGIN = "start `claude` once to log in, or set ANTHROPIC_API_KEY"
_NO_SESSION = ("No conversation found", "--resume requires a valid session")
_ROOT = "root/sudo"

_SUBTYPES: dict[str, tuple[FailureKind, str]] = {
    "error_max_turns": ("no-result", "its turns were used up (--max-turns)"),
    "error_max_budget_usd": ("no-result", "its budget was used up (--max-budget-usd)"),
    "error_max_structured_output_retries": ("bad-output", "its fields never fitted the schema"),
}


def build(question: AdapterQuestion, _folder: str) -> ProgramCall:
    """Build the call for *question*."""
    settings = question.settings
    argv = ["claude", "-p", "--output-format", "stream-json", "--verbose"]
    argv += ["--permission-mode", settings.get("permission") or _PERMISSION]
    argv += option("--model", settings.get("model"))
    argv += option("--resume", question.session)
    schema = _build_schema(question)
    argv += option("--json-schema", schema)
    entry = find_mcp_entry(question.environ, settings)
    argv += option("--mcp-config", mcp_servers_json(entry, alwaysLoad=True))
    argv += option("--allowedTools", f"mcp__{SERVER}" if entry else None)
    store = find_store_pattern(question.environ)
    # A rule for Edit holds for all its file tools, in every mode; `//` is the root.
    argv += option("--disallowedTools", f"Edit(/{store}/**)" if store else None)
    argv += list_words_of_turn("claude", question.environ)
    prompt = question.prompt if schema is None else add_guide(question.prompt)
    environ = {"DISABLE_AUTOUPDATER": "1"}
    if not question.environ.get("CLAUDE_CODE_MAX_RETRIES"):
        environ["CLAUDE_CODE_MAX_RETRIES"] = _RETRIES
    return ProgramCall((*argv, *split_args(settings)), prompt.encode(errors="replace"), environ)


def parse(ended: EndedProgram) -> AdapterAnswer:
    """Read the answer; raise AskFailed if the program reports a failure or no end."""
    records = parse_lines(ended.run.stdout)
    result = find_last(records, "result")
    if result is None:
        raise _explain_none(ended, records)
    answer = _read_answer(result, records, ended.question)
    if result.get("is_error") is not False or result.get("subtype") != "success":
        raise _explain_failure(result, records, answer)
    require_good_end("claude", ended, answer, after="result")
    if not answer.text.strip() and answer.structured is None:
        raise _explain_nothing(result, answer)
    return answer


def _build_schema(question: AdapterQuestion) -> str | None:
    schema = json.dumps(find_object_schema(question))
    return schema if schema != "null" and len(schema) <= _LONGEST_SCHEMA else None


def _read_answer(
    result: Mapping[str, Any], records: list[dict[str, Any]], question: AdapterQuestion
) -> AdapterAnswer:
    value = find(result, dict, "structured_output")
    # The text of a failure is not an answer.
    is_answer = value is None and result.get("is_error") is False
    said = find(result, str, "result") or "" if is_answer else ""
    meta: Any = value
    if value is not None and question.schema is not None:
        read = read_answer(value, question.schema)
        said, meta = (read.content, read.meta) if read else ("", value)
    return AdapterAnswer(
        text=said if said.strip() else _find_last_words(records),
        structured=meta,
        session=find(result, str, "session_id"),
        usage=_read_usage(result, question),
        trace=(*_read_trace(records), *_read_refusals(result)),
    )


def _read_usage(result: Mapping[str, Any], question: AdapterQuestion) -> dict[str, Any]:
    """Read the usage: the tokens of this question; the cost is the whole session's."""
    usage = find(result, dict, "usage")
    cached = find(usage, int, "cache_read_input_tokens")
    created = find(usage, int, "cache_creation_input_tokens")
    told = [
        part for part in (find(usage, int, "input_tokens"), created, cached) if part is not None
    ]
    return build_usage(
        inputTokens=sum(told) if told else None,
        outputTokens=find(usage, int, "output_tokens"),
        cachedInputTokens=cached,
        reasoningTokens=find(usage, int, "output_tokens_details", "thinking_tokens"),
        costUsd=_find_cost(result, question),
        turns=find(result, int, "num_turns"),
    )


def _find_cost(result: Mapping[str, Any], question: AdapterQuestion) -> float | None:
    total = find(result, float, "total_cost_usd")
    if (
        total is None
        or question.session is None
        or find(result, str, "session_id") != question.session
    ):
        return total
    before = find(question.spent, float, "costUsd")
    if before is None:
        # The whole session's cost would be counted twice.
        return None
    return total - before if total >= before else total


def _blocks(record: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    """List the blocks of one kind in a message; none in an error of the endpoint."""
    blocks = find(record, list, "message", "content") or []
    is_error = record.get("is_api_error_message") is True
    return [] if is_error else [block for block in blocks if find(block, str, "type") == kind]


def _find_last_words(records: list[dict[str, Any]]) -> str:
    """Return its own last text, not that of a sub-agent."""
    for record in reversed(records):
        if record.get("type") == "assistant" and not record.get("parent_tool_use_id"):
            text = "".join(find(block, str, "text") or "" for block in _blocks(record, "text"))
            if text.strip():
                return text
    return ""


def _read_trace(records: list[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield its messages, its tools with their output, and its retries."""
    results = {
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
            if block.get("name") != _STRUCTURED:
                done = results.get(find(block, str, "id"), {})
                yield {
                    "type": "tool",
                    "name": block.get("name"),
                    "input": block.get("input"),
                    "output": done.get("content"),
                    "ok": bool(done) and done.get("is_error") is not True,
                }


def _read_refusals(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for denial in find(result, list, "permission_denials") or []:
        tool, given = find(denial, str, "tool_name"), find(denial, dict, "tool_input")
        yield {"type": "permission", "name": tool, "allowed": False, "input": given}


def _explain_nothing(result: Mapping[str, Any], answer: AdapterAnswer) -> AskFailed:
    if find(result, list, "permission_denials"):
        message = "claude ended without an answer: it was not allowed to use its tools"
        return AskFailed("refused-permission", message, hint=_ALLOW, partial=answer)
    return AskFailed("no-result", "claude ended well, but said nothing", partial=answer)


def _explain_failure(
    result: Mapping[str, Any], records: list[dict[str, Any]], answer: AdapterAnswer
) -> AskFailed:
    errors = [each for each in find(result, list, "errors") or [] if isinstance(each, str)]
    words = find(result, str, "result") or "; ".join(errors)
    if any(mark in words for mark in _NO_SESSION):
        return AskFailed("no-session", f"claude: {words}")
    kind, meaning = _SUBTYPES.get(find(result, str, "subtype") or "", (None, ""))
    if kind is not None:
        told = f": {errors[0]}" if errors else ""
        return AskFailed(kind, f"claude stopped: {meaning}{told}", partial=answer)
    if (find(result, str, "terminal_reason") or "").startswith("aborted"):
        return AskFailed("interrupted", "claude was interrupted", partial=answer)
    status = find(result, int, "api_error_status")
    failure = explain_words("claude", words, status=status, login=_LOGIN, partial=answer)
    return with_reset(failure, _find_reset(records))


def _find_reset(records: list[dict[str, Any]]) -> int | None:
    """Return when the exceeded limit ends, in seconds since 1970, if a record says so."""
    for record in reversed(records):
        if find(record, str, "rate_limit_info", "status") == "rejected":
            return find(record, int, "rate_limit_info", "resetsAt")
    return None


def _explain_none(ended: EndedProgram, records: list[dict[str, Any]]) -> AskFailed:
    partial = AdapterAnswer(text=_find_last_words(records), trace=tuple(_read_trace(records)))
    failure = explain_no_record("claude", ended, login=_LOGIN, partial=partial)
    words = failure.message
    if any(mark in words for mark in _NO_SESSION):
        return AskFailed("no-session", words)
    if _ROOT in words:
        hint = "run it as another user, or say IS_SANDBOX=1 where it can do no harm"
        return AskFailed("refused-permission", words, hint=hint)
    return failure


_VARIABLES = (
    "ANTHROPIC_*", "CLAUDE_*", "VERTEX_*", "CLOUD_ML_REGION", "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CLOUD_PROJECT", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION",
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK", "MAX_THINKING_TOKENS", "MCP_*", "IS_SANDBOX",
)  # fmt: skip

ADAPTER = CommandAdapter(
    name="claude",
    programs=("claude",),
    build=build,
    parse=parse,
    takes_schema=True,
    resumes=True,
    environ=_VARIABLES,
    install="npm install -g @anthropic-ai/claude-code, then `claude` once to log in",
)

main = adapter_main(ADAPTER, about=_ABOUT, keys=_KEYS)

if __name__ == "__main__":
    sys.exit(main())
