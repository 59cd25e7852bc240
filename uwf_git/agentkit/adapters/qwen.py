"""uwf-qwen: Qwen Code plays a role.

Only its record ``result`` is the verdict; a run that used up its budget, or was stopped, has none.
Its tokens are those of the whole session, its turns are not.
Everything is permitted by default: no mode confines files to the work directory (tried with 0.24.4:
`auto-edit` writes anywhere), and all but `yolo` offer no commands when there is no person to ask.
Its sandbox is one of its settings (`tools.executionSandbox`).
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from uwf_git.agentkit.ladder import add_guide
from uwf_git.agentkit.programs.command import CommandAdapter, EndedProgram, ProgramCall, Report
from uwf_git.agentkit.programs.playing import (
    PROVIDER_VARIABLES,
    adapter_main,
    find_object_schema,
    mcp_servers_json,
    option,
    write_file,
)
from uwf_git.agentkit.records import (
    find,
    find_first,
    find_last,
    find_last_text,
    read_result,
    read_trace,
    read_usage,
)
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, AskFailed, split_args
from uwf_git.model.thread import add_usage

_ABOUT = """\
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


def build(question: AdapterQuestion, folder: str) -> ProgramCall:
    settings, prompt = question.settings, question.prompt
    argv = ["qwen", "--output-format", "stream-json"]
    argv += ["--approval-mode", settings.get("permission") or "yolo"]
    argv += option("--model", settings.get("model"))
    argv += option("--resume", question.session)
    schema = find_object_schema(question)
    if schema is not None:
        argv += ["--json-schema", f"@{write_file(folder, 'schema.json', json.dumps(schema))}"]
        prompt = add_guide(prompt)
    config = mcp_servers_json(question, alwaysLoadTools=True)
    argv += option("--mcp-config", config)
    environ = {"QWEN_CODE_SUPPRESS_YOLO_WARNING": "1"}
    return ProgramCall((*argv, *split_args(settings)), prompt, environ)


def read(ended: EndedProgram) -> Report:
    records = ended.read_records()
    result = find_last(records, "result")
    session, asked = find_first(records, "session_id"), ended.question
    # Of the whole session, with its background agents; but its turns are counted anew.
    usage = read_usage(
        result or {},
        inputTokens="usage.input_tokens",
        outputTokens="usage.output_tokens",
        cachedInputTokens="usage.cache_read_input_tokens",
        turns="num_turns",
    )
    answer = AdapterAnswer(
        text=find_last_text(records),
        session=session,
        usage=usage or _add_up(records, asked.spent if session == asked.session else {}),
        trace=tuple(read_trace(records, result, without="structured_output")),
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
    text, meta = read_result(result, "structured_result", records, asked)
    answer = replace(answer, text=text, structured=meta)
    is_refused = bool(find(result, list, "permission_denials"))
    return Report(answer, is_refused=is_refused, any_status=True)


def _add_up(records: list[dict[str, Any]], spent: Mapping[str, Any]) -> dict[str, Any]:
    """Add the usage of single messages to what was *spent*, for a run that reports no usage."""
    told = [found for each in records if (found := find(each, dict, "message", "usage"))]
    tokens = {"inputTokens": "input_tokens", "outputTokens": "output_tokens"}
    usage = {name: spent.get(name, 0) for name in tokens}
    for each in told:
        usage = add_usage(usage, read_usage(each, **tokens))
    return {**usage, "turns": len(told)} if told else {}


# Named one by one: it sets many others for its children, which must not reach a nested qwen.
_ENVIRON = (
    "QWEN_HOME", "QWEN_DEFAULT_AUTH_TYPE", "QWEN_MODEL", "QWEN_SANDBOX",
    "QWEN_CODE_SYSTEM_SETTINGS_PATH", "QWEN_CODE_SYSTEM_DEFAULTS_PATH", "BAILIAN_*",
    *PROVIDER_VARIABLES,
)  # fmt: skip

ADAPTER = CommandAdapter(
    name="qwen",
    build=build,
    read=read,
    tell=lambda record: read_trace([record], None, without="structured_output"),
    schema_way="its own --json-schema",
    takes_mcp=True,
    environ=_ENVIRON,
    install="npm install -g @qwen-code/qwen-code (it needs Node 22)",
    login="run qwen and use its /auth, or set OPENAI_API_KEY",
    lost_session="No saved session found",
    anew=("turns",),
)

main = adapter_main(ADAPTER, about=_ABOUT, keys=ADAPTER.keys)
