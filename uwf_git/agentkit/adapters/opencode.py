"""uwf-opencode: opencode plays a role.

No record closes its events, so the answer is the text of the last step, if that ended with the
reason "stop". It exits with 0 too when a tool was refused and the work is half done: a refusal by a
person ends the run, one by a rule does not.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.agentkit.extraction.records import Record, build_usage, find, find_last, parse_lines
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
    require_good_end,
    require_words,
)
from uwf_git.agentkit.programs.mcp_config import SERVER, find_mcp_entry
from uwf_git.agentkit.programs.options import MCP_KEYS, option
from uwf_git.agentkit.programs.provider_variables import PROVIDER_VARIABLES
from uwf_git.agentkit.settings import choose_permission, split_args

_ABOUT = """\
Play roles with opencode (`opencode run`), in the thread's work directory. Models are named as
opencode names them: provider/model.

What it may do (--permission); nothing is asked, since no person is there to answer:
  workdir   everything that its configuration does not deny, on files in the work directory
            and the temporary one; it looks for paths in commands too, but finds not all.
            The default. With a variable OPENCODE_PERMISSION of your own: as auto.
  auto      everything that its configuration does not deny
  ask       only what its configuration allows; all else is refused, and ends the attempt
"""

_LOGIN = "opencode auth login, or the key of its provider in the environment"

_PERMISSIONS: dict[str, tuple[str, ...]] = {
    "workdir": ("--auto",),
    "auto": ("--auto",),
    "ask": (),
}
_RULES = "OPENCODE_PERMISSION"


def build(question: AdapterQuestion, _folder: str) -> ProgramCall:
    """Build the call for *question*."""
    settings = question.settings
    permission = choose_permission(settings, _PERMISSIONS)
    # Without a title it calls the model for one.
    argv = ["opencode", "run", "--format", "json", "--title", "uwf", *_PERMISSIONS[permission]]
    argv += option("--model", settings.get("model"))
    argv += option("--session", question.session)
    environ = {"OPENCODE_DISABLE_AUTOUPDATE": "true", **_build_config(question)}
    if permission == "workdir" and not question.environ.get(_RULES):
        environ[_RULES] = _build_rules(question.environ)
    given = question.prompt.encode(errors="replace")
    return ProgramCall((*argv, *split_args(settings)), given, environ)


def parse(ended: EndedProgram) -> AdapterAnswer:
    """Read the answer; raise AskFailed if the program reports a failure or no end."""
    records = parse_lines(ended.run.stdout)
    steps = [record for record in records if record.get("type") == "step_finish"]
    end = find_last(records, "step_finish")
    last = find(end, str, "part", "messageID")
    answer = AdapterAnswer(
        text=_text_of(records, last),
        session=next(filter(None, (find(each, str, "sessionID") for each in records)), None),
        usage=_read_usage(steps),
        trace=tuple(_trace(records, last)),
    )
    # It recovered from an error that an end follows.
    ends = [record for record in records if record.get("type") in ("error", "step_finish")]
    if ends and ends[-1].get("type") == "error":
        raise _explain_error(ends[-1], answer)
    reason = find(end, str, "part", "reason")
    if reason != "stop":
        raise _explain_stop(ended, reason, answer)
    require_good_end("opencode", ended, answer, after="answer")
    require_words("opencode", answer)
    return answer


def _build_config(question: AdapterQuestion) -> dict[str, str]:
    """Add our MCP server to the configuration in the environment, if there is one."""
    entry = find_mcp_entry(question.environ, question.settings)
    if entry is None:
        return {}
    try:
        config = json.loads(question.environ.get("OPENCODE_CONFIG_CONTENT") or "{}")
        servers = config.setdefault("mcp", {})
        servers[SERVER] = {
            "type": "local",
            "command": [entry["command"], *entry["args"]],
            "environment": entry["env"],
            "enabled": True,
        }
    except (ValueError, AttributeError, TypeError):
        # The user's own; opencode reports what is wrong with it.
        return {}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config)}


def _build_rules(environ: Mapping[str, str]) -> str:
    """Deny other directories; of two rules that match, the later one counts."""
    temporary = environ.get("TMPDIR") or "/tmp"  # noqa: S108 (nothing is written there by us)
    elsewhere = {"*": "deny", os.path.join(temporary, "*"): "allow"}
    return json.dumps({"external_directory": elsewhere})


def _text_of(records: list[dict[str, Any]], message: str | None) -> str:
    """Return the text of one message of the model."""
    parts = [
        find(record, str, "part", "text") or ""
        for record in records
        if record.get("type") == "text" and find(record, str, "part", "messageID") == message
    ]
    return "\n\n".join(parts)


def _read_usage(steps: list[dict[str, Any]]) -> dict[str, Any]:
    if not steps:
        return {}
    # It reports 0 for a model whose price it does not know.
    cost = sum(find(step, float, "part", "cost") or 0 for step in steps)
    return build_usage(
        inputTokens=_sum(steps, "input"),
        outputTokens=_sum(steps, "output"),
        reasoningTokens=_sum(steps, "reasoning"),
        cachedInputTokens=_sum(steps, "cache", "read"),
        costUsd=cost or None,
        turns=len(steps),
    )


def _sum(steps: list[dict[str, Any]], *path: str) -> int | None:
    found = [find(step, int, "part", "tokens", *path) for step in steps]
    return None if None in found else sum(number for number in found if number is not None)


def _trace(records: list[dict[str, Any]], last: str | None) -> Iterator[Record]:
    for record in records:
        kind = record.get("type")
        if kind == "tool_use":
            status = find(record, str, "part", "state", "status")
            yield {
                "type": "tool",
                "name": find(record, str, "part", "tool"),
                "input": find(record, dict, "part", "state", "input"),
                "ok": status == "completed",
                "output": find(record, str, "part", "state", "output")
                or find(record, str, "part", "state", "error"),
            }
        elif kind == "text" and find(record, str, "part", "messageID") != last:
            yield {"type": "message", "text": find(record, str, "part", "text")}


def _explain_error(record: Record, answer: AdapterAnswer) -> AskFailed:
    words = find(record, str, "error", "data", "message") or find(record, str, "error", "name")
    status = find(record, int, "error", "data", "statusCode")
    return explain_words("opencode", words or "", status=status, login=_LOGIN, partial=answer)


def _explain_stop(ended: EndedProgram, reason: str | None, answer: AdapterAnswer) -> AskFailed:
    if ended.question.session is not None and b"Session not found" in ended.run.stderr:
        return explain_unknown_session("opencode", ended)
    refused = [event for event in answer.trace if _is_refusal(event)]
    if refused and not ended.run.exit_code:
        message = f"opencode stopped because the tool {refused[-1]['name']} was refused"
        hint = "allow it in opencode's configuration, or set permission=auto"
        return AskFailed("refused-permission", message, hint=hint, partial=answer)
    if reason == "length":
        message = "opencode's model stopped at its longest answer"
        return AskFailed("too-long", message, partial=answer)
    return explain_no_record("opencode", ended, login=_LOGIN, partial=answer)


def _is_refusal(event: Record) -> bool:
    return event["type"] == "tool" and "rejected permission" in str(event["output"])


ADAPTER = CommandAdapter(
    name="opencode",
    programs=("opencode",),
    build=build,
    parse=parse,
    resumes=True,
    environ=("OPENCODE_*", *PROVIDER_VARIABLES),
    install="npm install -g opencode-ai",
)

main = adapter_main(ADAPTER, about=_ABOUT, keys=MCP_KEYS)

if __name__ == "__main__":
    sys.exit(main())
