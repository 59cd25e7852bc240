"""Claude Code and Qwen Code, whose records are alike, play roles."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from uwf_git.agentkit.ladder import add_guide, read_answer
from uwf_git.agentkit.programs import playing
from uwf_git.agentkit.programs.command import CommandAdapter, EndedProgram, ProgramCall, Report
from uwf_git.agentkit.records import find, find_first, find_last, read_usage, tool_event
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, AskFailed, FailureKind, split_args
from uwf_git.model.thread import NOTHING, add_usage
from uwf_git.plan.hooks import list_words_of_turn

# Read records that hold messages of Anthropic's API in blocks, as claude and qwen print them.


def _blocks(record: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    """List the blocks of one kind in a message; [] for an error of the endpoint."""
    blocks = find(record, list, "message", "content") or []
    is_error = record.get("is_api_error_message") is True
    return [] if is_error else [block for block in blocks if find(block, str, "type") == kind]


def _find_last_text(records: list[dict[str, Any]]) -> str:
    """Return its own last text, not the text of a sub-agent."""
    for record in reversed(records):
        if record.get("type") == "assistant" and not record.get("parent_tool_use_id"):
            text = "".join(find(block, str, "text") or "" for block in _blocks(record, "text"))
            if text.strip():
                return text
    return ""


def _read_result(
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
    return said if said.strip() else _find_last_text(records), meta


def _read_trace(
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


# uwf-claude: Claude Code plays a role.
#
# Only its record `result` is the verdict. Its subtype is "success" even when the endpoint failed
# (``is_error`` says so), its exit status is 0 when it was interrupted, and a success may lack the
# object that was requested.

_CLAUDE_ABOUT = """\
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

# One argument holds 128 KiB on Linux.
_LONGEST_SCHEMA = 100_000

_CLAUDE_LOGIN = "start `claude` once to log in, or set ANTHROPIC_API_KEY"

_CLAUDE_SUBTYPES: dict[str, tuple[FailureKind, str]] = {
    "error_max_turns": ("no-result", "its turns were used up (--max-turns)"),
    "error_max_budget_usd": ("no-result", "its budget was used up (--max-budget-usd)"),
    "error_max_structured_output_retries": ("bad-output", "its fields never fitted the schema"),
}


def build_claude(question: AdapterQuestion, _folder: str) -> ProgramCall:
    settings = question.settings
    argv = ["claude", "-p", "--output-format", "stream-json", "--verbose"]
    argv += ["--permission-mode", settings.get("permission") or "acceptEdits"]
    argv += playing.option("--model", settings.get("model"))
    argv += playing.option("--resume", question.session)
    schema = _build_claude_schema(question)
    argv += playing.option("--json-schema", schema)
    servers = playing.mcp_servers_json(question, alwaysLoad=True)
    argv += playing.option("--mcp-config", servers)
    argv += playing.option("--allowedTools", f"mcp__{playing.SERVER}" if servers else None)
    store = playing.find_store_pattern(question.environ)
    # A rule for Edit holds for all its file tools, in every mode; `//` is the root.
    argv += playing.option("--disallowedTools", f"Edit(/{store}/**)" if store else None)
    argv += list_words_of_turn("claude", question.environ)
    prompt = question.prompt if schema is None else add_guide(question.prompt)
    environ = {"DISABLE_AUTOUPDATER": "1"}
    if not question.environ.get("CLAUDE_CODE_MAX_RETRIES"):
        # It retries 401 too, with waits that double.
        environ["CLAUDE_CODE_MAX_RETRIES"] = "2"
    return ProgramCall((*argv, *split_args(settings)), prompt, environ)


def read_claude(ended: EndedProgram) -> Report:
    records = ended.read_records()
    result = find_last(records, "result")
    trace = tuple(_read_trace(records, result, without="StructuredOutput"))
    usage = _read_claude_usage(result or {}) or _add_up(records, _read_claude_usage)
    if result is None:
        answer = AdapterAnswer(text=_find_last_text(records), usage=usage, trace=trace)
        if b"root/sudo" in ended.run.stderr:
            words = ended.explain_no_record("claude", login=_CLAUDE_LOGIN).message
            hint = "run it as another user, or say IS_SANDBOX=1 where it can do no harm"
            raise AskFailed("refused-permission", words, hint=hint, partial=answer)
        return Report(answer, has_end=False)
    text, meta = _read_result(result, "structured_output", records, ended.question)
    answer = AdapterAnswer(
        text=text,
        structured=meta,
        session=find(result, str, "session_id"),
        usage=usage,
        trace=trace,
    )
    if result.get("is_error") is False and result.get("subtype") == "success":
        return Report(answer, is_refused=bool(find(result, list, "permission_denials")))
    return _read_claude_failure(result, records, answer)


def _build_claude_schema(question: AdapterQuestion) -> str | None:
    schema = json.dumps(playing.find_object_schema(question))
    return schema if schema != "null" and len(schema) <= _LONGEST_SCHEMA else None


def _read_claude_usage(result: Mapping[str, Any]) -> dict[str, Any]:
    """Read the usage of a result or a message: its tokens; the cost is the whole session's."""
    usage = read_usage(
        result,
        inputTokens="usage.input_tokens",
        outputTokens="usage.output_tokens",
        cachedInputTokens="usage.cache_read_input_tokens",
        reasoningTokens="usage.output_tokens_details.thinking_tokens",
        turns="num_turns",
        costUsd="total_cost_usd",
    )
    created = find(result, int, "usage", "cache_creation_input_tokens")
    parts = (usage.get("inputTokens"), usage.get("cachedInputTokens"), created)
    told = [part for part in parts if part is not None]
    return usage | ({"inputTokens": sum(told)} if told else {})


def _read_claude_failure(
    result: Mapping[str, Any], records: list[dict[str, Any]], answer: AdapterAnswer
) -> Report:
    errors = [each for each in find(result, list, "errors") or [] if isinstance(each, str)]
    kind, meaning = _CLAUDE_SUBTYPES.get(find(result, str, "subtype") or "", (None, ""))
    if kind is not None:
        told = f": {errors[0]}" if errors else ""
        raise AskFailed(kind, f"claude stopped: {meaning}{told}", partial=answer)
    if (find(result, str, "terminal_reason") or "").startswith("aborted"):
        raise AskFailed("interrupted", "claude was interrupted", partial=answer)
    over = [each for each in records if find(each, str, "rate_limit_info", "status") == "rejected"]
    return Report(
        answer,
        error=find(result, str, "result") or "; ".join(errors),
        status=find(result, int, "api_error_status"),
        reset_s=find(over[-1], int, "rate_limit_info", "resetsAt") if over else None,
    )


CLAUDE = CommandAdapter(
    name="claude",
    build=build_claude,
    read=read_claude,
    tell=lambda record: _read_trace([record], None, without="StructuredOutput"),
    schema_way="its own --json-schema",
    takes_mcp=True,
    environ=(
        "ANTHROPIC_*", "CLAUDE_*", "VERTEX_*", "CLOUD_ML_REGION", "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_CLOUD_PROJECT", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION",
        "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK", "MAX_THINKING_TOKENS", "MCP_*", "IS_SANDBOX",
    ),
    install="npm install -g @anthropic-ai/claude-code, then `claude` once to log in",
    login=_CLAUDE_LOGIN,
    lost_session="No conversation found|--resume requires a valid session",
    # Its cost is the whole session's.
    anew=("inputTokens", "outputTokens", "cachedInputTokens", "reasoningTokens", "turns"),
)  # fmt: skip

claude_main = playing.adapter_main(CLAUDE, about=_CLAUDE_ABOUT, keys=CLAUDE.keys)


# uwf-qwen: Qwen Code plays a role.
#
# Only its record ``result`` is the verdict; a run that used up its budget, or was stopped, has
# none.
# Its tokens are those of the whole session, its turns are not.
# Everything is permitted by default: no mode confines files to the work directory (tried with
# 0.24.4: `auto-edit` writes anywhere), and all but `yolo` offer no commands when there is no person
# to ask. Its sandbox is one of its settings (`tools.executionSandbox`).

_QWEN_ABOUT = """\
Play roles with Qwen Code (`qwen`), in the thread's work directory. It needs Node 22, and a model:
its own settings, or OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL with --args '--auth-type
openai'.

What it may do (--permission); nothing is asked, since no person is there to answer:
  yolo        everything that you may do, or what its sandbox lets it, if its settings
              have one. The default.
  auto-edit   read and edit files, anywhere; it is offered no commands
  default     read only; plan and auto as well
"""

_PLAIN_TEXT = "plain text instead of calling the structured_output tool"
_BUDGET_STATUS = 55


def build_qwen(question: AdapterQuestion, folder: str) -> ProgramCall:
    settings, prompt = question.settings, question.prompt
    argv = ["qwen", "--output-format", "stream-json"]
    argv += ["--approval-mode", settings.get("permission") or "yolo"]
    argv += playing.option("--model", settings.get("model"))
    argv += playing.option("--resume", question.session)
    schema = playing.find_object_schema(question)
    if schema is not None:
        file = playing.write_file(folder, "schema.json", json.dumps(schema))
        argv += ["--json-schema", f"@{file}"]
        prompt = add_guide(prompt)
    argv += playing.option("--mcp-config", playing.mcp_servers_json(question, alwaysLoadTools=True))
    environ = {"QWEN_CODE_SUPPRESS_YOLO_WARNING": "1"}
    return ProgramCall((*argv, *split_args(settings)), prompt, environ)


def read_qwen(ended: EndedProgram) -> Report:
    records = ended.read_records()
    result = find_last(records, "result")
    session, asked = find_first(records, "session_id"), ended.question
    before = asked.spent if session == asked.session else {}
    # Of the whole session, with its background agents; but its turns are counted anew.
    usage = _read_qwen_tokens(
        result or {}, cachedInputTokens="usage.cache_read_input_tokens", turns="num_turns"
    )
    answer = AdapterAnswer(
        text=_find_last_text(records),
        session=session,
        usage=usage or _add_up(records, _read_qwen_tokens, before),
        trace=tuple(_read_trace(records, result, without="structured_output")),
    )
    if result is None and ended.run.exit_code == _BUDGET_STATUS:
        lines = ended.run.stderr.decode(errors="replace").strip().splitlines()
        message = f"qwen used up its budget: {lines[-1]:.200}" if lines else "qwen ran too long"
        raise AskFailed("no-result", message, partial=answer)
    if result is None:
        return Report(answer, has_end=False)
    words = find(result, str, "error", "message") or ""
    is_fine = result.get("is_error") is False and not ended.run.exit_code
    if not is_fine and not (_PLAIN_TEXT in words and answer.text.strip()):
        return Report(answer, error=words)
    text, meta = _read_result(result, "structured_result", records, asked)
    answer = replace(answer, text=text, structured=meta)
    is_refused = bool(find(result, list, "permission_denials"))
    return Report(answer, is_refused=is_refused, any_status=True)


def _read_qwen_tokens(record: Mapping[str, Any], **more: str) -> dict[str, Any]:
    tokens = {"inputTokens": "usage.input_tokens", "outputTokens": "usage.output_tokens"}
    return read_usage(record, **tokens, **more)


def _add_up(
    records: list[dict[str, Any]],
    read: Callable[[Mapping[str, Any]], dict[str, Any]],
    spent: Mapping[str, Any] = NOTHING,
) -> dict[str, Any]:
    """Add the usage of single messages to what was *spent*, for a run that reports no usage."""
    # claude prints a record for each block of a message, and each has the message's usage.
    told = {
        find(each, str, "message", "id") or number: each["message"]
        for number, each in enumerate(records)
        if find(each, dict, "message", "usage")
    }
    usage = {name: spent.get(name, 0) for name in ("inputTokens", "outputTokens")}
    for message in told.values():
        usage = add_usage(usage, read(message))
    return {**usage, "turns": len(told)} if told else {}


QWEN = CommandAdapter(
    name="qwen",
    build=build_qwen,
    read=read_qwen,
    tell=lambda record: _read_trace([record], None, without="structured_output"),
    schema_way="its own --json-schema",
    takes_mcp=True,
    # Named one by one: it sets many others for its children, which must not reach a nested qwen.
    environ=(
        "QWEN_HOME", "QWEN_DEFAULT_AUTH_TYPE", "QWEN_MODEL", "QWEN_SANDBOX",
        "QWEN_CODE_SYSTEM_SETTINGS_PATH", "QWEN_CODE_SYSTEM_DEFAULTS_PATH", "BAILIAN_*",
        *playing.PROVIDER_VARIABLES,
    ),
    install="npm install -g @qwen-code/qwen-code (it needs Node 22)",
    login="run qwen and use its /auth, or set OPENAI_API_KEY",
    lost_session="No saved session found",
    anew=("turns",),
)  # fmt: skip

qwen_main = playing.adapter_main(QWEN, about=_QWEN_ABOUT, keys=QWEN.keys)
