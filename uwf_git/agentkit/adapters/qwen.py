"""uwf-qwen: Qwen Code plays a role.

Owns: how `qwen` is called without a terminal, and what its records mean.
Knows nothing of: running it.
Always true: only its record ``result`` is the verdict; a run that used up its budget, or was
stopped, has none. Its tokens count on over a resumed session, its turns do not.
Everything is permitted by default: none of its modes holds files to the work directory (tried with
0.24.4: in `auto-edit` it writes anywhere), and all but `yolo` offer no commands when nobody is
there to be asked. Its sandbox is a matter of its settings (`tools.executionSandbox`).
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.agentkit.adapter import Answer, Asked, NoAnswer
from uwf_git.agentkit.command_adapter import Command, CommandAdapter, Ended, adapter_main
from uwf_git.agentkit.failure_words import (
    explain_no_record,
    explain_unknown_session,
    explain_words,
)
from uwf_git.agentkit.mcp_config import find_mcp_entry, mcp_servers_json
from uwf_git.agentkit.provider_variables import PROVIDER_VARIABLES
from uwf_git.agentkit.records import build_usage, find, parse_lines
from uwf_git.agentkit.role_object import GUIDE, read_answer, wanted_of
from uwf_git.agentkit.settings import split_args

_ABOUT = """\
Play roles with Qwen Code (`qwen`), in the thread's work directory. It needs Node 22, and a model:
its own settings, or OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL with --args '--auth-type
openai'.

What it may do without asking, since nobody is there to be asked (--permission):
  yolo        everything that you may do, or what its sandbox lets it, if its settings
              have one. The default.
  auto-edit   read and edit files, anywhere; it is offered no commands
  default     read only; plan and auto as well
"""

_LOGIN = "run qwen and use its /auth, or set OPENAI_API_KEY"

_KEYS = {
    "schema": "words: ask for the fields in words, not by its own --json-schema",
    "mcp": "off: do not offer it the tools of `uwf mcp`",
}

_PERMISSION = "yolo"

_SCHEMA_FILE = "schema.json"

_PLAIN_TEXT = "plain text instead of calling the structured_output tool"
_UNKNOWN_SESSION = b"No saved session found"
_BUDGET_STATUS = 55

Record = Mapping[str, Any]


def build(asked: Asked, folder: str) -> Command:
    """Build the call that asks *asked*; its schema goes into a file in *folder*.

    Raises:
        BadUsage: a setting is wrong.
    """
    settings, prompt = asked.settings, asked.prompt
    argv = ["qwen", "--output-format", "stream-json"]
    argv += ["--approval-mode", settings.get("permission") or _PERMISSION]
    if settings.get("model"):
        argv += ["--model", settings["model"]]
    if asked.session is not None:
        argv += ["--resume", asked.session]
    if asked.schema is not None and settings.get("schema") != "words":
        path = os.path.abspath(os.path.join(folder, _SCHEMA_FILE))
        with open(path, "w", encoding="utf-8") as file:
            json.dump(wanted_of(asked.schema).schema, file)
        argv += ["--json-schema", f"@{path}"]
        prompt = f"{prompt}\n{GUIDE}\n"
    if find_mcp_entry(asked.environ, settings) is not None:
        argv += ["--mcp-config", mcp_servers_json(asked.environ, alwaysLoadTools=True)]
    environ = {"QWEN_CODE_SUPPRESS_YOLO_WARNING": "1"}
    return Command((*argv, *split_args(settings)), prompt.encode(errors="replace"), environ)


def parse(ended: Ended) -> Answer:
    """Read what it printed.

    Raises:
        NoAnswer: it says that it failed, or does not say that it has finished.
    """
    records = parse_lines(ended.run.stdout)
    results = [record for record in records if record.get("type") == "result"]
    sessions = [name for record in records if (name := find(record, str, "session_id"))]
    partial = Answer(
        text=_last_text(records),
        session=sessions[0] if sessions else None,
        usage=_add_up(records),
        trace=tuple(_trace(records)),
    )
    if not results:
        raise _explain_no_result(ended, partial)
    words = find(results[-1], str, "error", "message") or ""
    is_fine = results[-1].get("is_error") is False and not ended.run.exit_code
    if not is_fine and not (_PLAIN_TEXT in words and partial.text.strip()):
        raise explain_words("qwen", words, login=_LOGIN, partial=partial)
    answer = _read_result(results[-1], ended.asked, partial)
    if not answer.text.strip() and answer.structured is None:
        denied = find(results[-1], list, "permission_denials")
        message = "qwen ended well, but said nothing"
        raise NoAnswer("refused-permission" if denied else "no-result", message, partial=partial)
    return answer


def _read_result(result: Record, asked: Asked, partial: Answer) -> Answer:
    """Give the answer in *result*; of one that is only words, the words."""
    value = find(result, dict, "structured_result")
    text, meta = find(result, str, "result") or partial.text, None
    if value is not None and asked.schema is not None:
        read = read_answer(value, asked.schema)
        # Even if it does not fit, it is what was said for the fields.
        text, meta = ("", value) if read is None else read
    return Answer(
        text=text,
        structured=meta,
        session=find(result, str, "session_id") or partial.session,
        usage=_read_usage(result, asked),
        trace=partial.trace,
    )


def _read_usage(result: Record, asked: Asked) -> dict[str, Any]:
    """Read what the whole session has cost, with that of the agents in its background."""
    turns = find(result, int, "num_turns")
    before = asked.spent.get("turns", 0) if asked.session is not None else 0
    return build_usage(
        inputTokens=find(result, int, "usage", "input_tokens"),
        outputTokens=find(result, int, "usage", "output_tokens"),
        cachedInputTokens=find(result, int, "usage", "cache_read_input_tokens"),
        # These alone begin anew when the session is resumed.
        turns=None if turns is None else turns + before,
    )


def _add_up(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up what single messages have cost, for a run without an end."""
    told = [found for each in records if (found := find(each, dict, "message", "usage"))]
    if not told:
        return {}
    return {
        "inputTokens": sum(find(each, int, "input_tokens") or 0 for each in told),
        "outputTokens": sum(find(each, int, "output_tokens") or 0 for each in told),
        "turns": len(told),
    }


def _blocks(records: list[dict[str, Any]], kind: str) -> Iterator[tuple[Record, Record]]:
    """Give the blocks in the messages of *kind*, each with its record."""
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


def _explain_no_result(ended: Ended, partial: Answer) -> NoAnswer:
    if ended.asked.session is not None and _UNKNOWN_SESSION in ended.run.stderr:
        return explain_unknown_session("qwen", ended)
    if ended.run.exit_code == _BUDGET_STATUS:
        lines = ended.run.stderr.decode(errors="replace").strip().splitlines()
        message = f"qwen used up its budget: {lines[-1]:.200}" if lines else "qwen ran too long"
        return NoAnswer("no-result", message, partial=partial)
    return explain_no_record("qwen", ended, login=_LOGIN, partial=partial)


# One by one: it sets many others for what it starts, which must not reach another one.
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
