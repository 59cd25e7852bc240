"""uwf-qwen: Qwen Code plays a role.

Only its record ``result`` is the verdict; a run that used up its budget, or was stopped, has none.
Its tokens are those of the whole session, its turns are not.
Everything is permitted by default: no mode confines files to the work directory (tried with 0.24.4:
`auto-edit` writes anywhere), and all but `yolo` offer no commands when there is no person to ask.
Its sandbox is one of its settings (`tools.executionSandbox`).
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.agentkit.extraction.records import Record, build_usage, find, find_last, parse_lines
from uwf_git.agentkit.extraction.role_object import add_guide, read_answer
from uwf_git.agentkit.programs.command_adapter import (
    CommandAdapter,
    EndedProgram,
    ProgramCall,
    adapter_main,
)
from uwf_git.agentkit.programs.failures import (
    explain_no_record,
    explain_unknown_session,
    explain_words,
    require_words,
)
from uwf_git.agentkit.programs.mcp_config import find_mcp_entry, mcp_servers_json
from uwf_git.agentkit.programs.options import (
    MCP_KEYS,
    find_object_schema,
    option,
    schema_keys,
    write_file,
)
from uwf_git.agentkit.programs.provider_variables import PROVIDER_VARIABLES
from uwf_git.agentkit.settings import split_args

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

_LOGIN = "run qwen and use its /auth, or set OPENAI_API_KEY"

_KEYS = {**schema_keys("its own --json-schema"), **MCP_KEYS}

_PERMISSION = "yolo"

_SCHEMA_FILE = "schema.json"

_PLAIN_TEXT = "plain text instead of calling the structured_output tool"
_UNKNOWN_SESSION = b"No saved session found"
_BUDGET_STATUS = 55


def build(question: AdapterQuestion, folder: str) -> ProgramCall:
    """Build the call for *question*; its schema goes into a file in *folder*."""
    settings, prompt = question.settings, question.prompt
    argv = ["qwen", "--output-format", "stream-json"]
    argv += ["--approval-mode", settings.get("permission") or _PERMISSION]
    argv += option("--model", settings.get("model"))
    argv += option("--resume", question.session)
    schema = find_object_schema(question)
    if schema is not None:
        argv += ["--json-schema", f"@{write_file(folder, _SCHEMA_FILE, json.dumps(schema))}"]
        prompt = add_guide(prompt)
    entry = find_mcp_entry(question.environ, settings)
    argv += option("--mcp-config", mcp_servers_json(entry, alwaysLoadTools=True))
    environ = {"QWEN_CODE_SUPPRESS_YOLO_WARNING": "1"}
    return ProgramCall((*argv, *split_args(settings)), prompt.encode(errors="replace"), environ)


def parse(ended: EndedProgram) -> AdapterAnswer:
    """Read the answer; raise AskFailed if the program reports a failure or no end."""
    records = parse_lines(ended.run.stdout)
    result = find_last(records, "result")
    sessions = [name for record in records if (name := find(record, str, "session_id"))]
    partial = AdapterAnswer(
        text=_last_text(records),
        session=sessions[0] if sessions else None,
        usage=_add_up(records),
        trace=tuple(_trace(records)),
    )
    if result is None:
        raise _explain_no_result(ended, partial)
    words = find(result, str, "error", "message") or ""
    is_fine = result.get("is_error") is False and not ended.run.exit_code
    if not is_fine and not (_PLAIN_TEXT in words and partial.text.strip()):
        raise explain_words("qwen", words, login=_LOGIN, partial=partial)
    answer = _read_result(result, ended.question, partial)
    is_refused = bool(find(result, list, "permission_denials"))
    require_words("qwen", answer, is_refused=is_refused)
    return answer


def _read_result(
    result: Record, question: AdapterQuestion, partial: AdapterAnswer
) -> AdapterAnswer:
    """Return the answer in *result*: an object, or only a text."""
    value = find(result, dict, "structured_result")
    text, meta = find(result, str, "result") or partial.text, None
    if value is not None and question.schema is not None:
        read = read_answer(value, question.schema)
        # Even if it does not fit, it was meant as the fields.
        text, meta = ("", value) if read is None else read
    return AdapterAnswer(
        text=text,
        structured=meta,
        session=find(result, str, "session_id") or partial.session,
        usage=_read_usage(result, question),
        trace=partial.trace,
    )


def _read_usage(result: Record, question: AdapterQuestion) -> dict[str, Any]:
    """Read the usage of the whole session, with its background agents."""
    turns = find(result, int, "num_turns")
    before = question.spent.get("turns", 0) if question.session is not None else 0
    return build_usage(
        inputTokens=find(result, int, "usage", "input_tokens"),
        outputTokens=find(result, int, "usage", "output_tokens"),
        cachedInputTokens=find(result, int, "usage", "cache_read_input_tokens"),
        # Only this count restarts when the session is resumed.
        turns=None if turns is None else turns + before,
    )


def _add_up(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up the usage of single messages, for a run without a result."""
    told = [found for each in records if (found := find(each, dict, "message", "usage"))]
    if not told:
        return {}
    return {
        "inputTokens": sum(find(each, int, "input_tokens") or 0 for each in told),
        "outputTokens": sum(find(each, int, "output_tokens") or 0 for each in told),
        "turns": len(told),
    }


def _blocks(records: list[dict[str, Any]], kind: str) -> Iterator[tuple[Record, Record]]:
    """Yield the blocks in the messages of *kind*, each with its record."""
    for record in records:
        if record.get("type") == kind:
            for block in find(record, list, "message", "content") or []:
                yield record, block


def _last_text(records: list[dict[str, Any]]) -> str:
    texts = [
        found
        for record, block in _blocks(records, "assistant")
        if record.get("parent_tool_use_id") is None and (found := find(block, str, "text"))
    ]
    return texts[-1] if texts else ""


def _trace(records: list[dict[str, Any]]) -> Iterator[Record]:
    results = {
        find(block, str, "tool_use_id"): block
        for _, block in _blocks(records, "user")
        if find(block, str, "type") == "tool_result"
    }
    for _, block in _blocks(records, "assistant"):
        if find(block, str, "type") == "tool_use":
            result = results.get(find(block, str, "id"), {})
            yield {
                "type": "tool",
                "name": find(block, str, "name"),
                "input": find(block, dict, "input"),
                "ok": result.get("is_error") is False,
                "output": find(result, str, "content"),
            }
        elif find(block, str, "text"):
            yield {"type": "message", "text": find(block, str, "text")}


def _explain_no_result(ended: EndedProgram, partial: AdapterAnswer) -> AskFailed:
    if ended.question.session is not None and _UNKNOWN_SESSION in ended.run.stderr:
        return explain_unknown_session("qwen", ended)
    if ended.run.exit_code == _BUDGET_STATUS:
        lines = ended.run.stderr.decode(errors="replace").strip().splitlines()
        message = f"qwen used up its budget: {lines[-1]:.200}" if lines else "qwen ran too long"
        return AskFailed("no-result", message, partial=partial)
    return explain_no_record("qwen", ended, login=_LOGIN, partial=partial)


# Named one by one: it sets many others for its children, which must not reach a nested qwen.
_ENVIRON = (
    "QWEN_HOME", "QWEN_DEFAULT_AUTH_TYPE", "QWEN_MODEL", "QWEN_SANDBOX",
    "QWEN_CODE_SYSTEM_SETTINGS_PATH", "QWEN_CODE_SYSTEM_DEFAULTS_PATH", "BAILIAN_*",
    *PROVIDER_VARIABLES,
)  # fmt: skip

ADAPTER = CommandAdapter(
    name="qwen",
    programs=("qwen",),
    build=build,
    parse=parse,
    takes_schema=True,
    resumes=True,
    environ=_ENVIRON,
    install="npm install -g @qwen-code/qwen-code (it needs Node 22)",
    usage_is_cumulative=True,
)

main = adapter_main(ADAPTER, about=_ABOUT, keys=_KEYS)

if __name__ == "__main__":
    sys.exit(main())
