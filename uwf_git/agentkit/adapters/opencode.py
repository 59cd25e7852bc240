"""uwf-opencode: opencode plays a role.

No record closes its events, so the answer is the text of the last step, if that ended with the
reason "stop". It exits with 0 too when a tool was refused and the work is half done: a refusal by a
person ends the run, one by a rule does not.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

from uwf_git.agentkit.programs.command import CommandAdapter, EndedProgram, ProgramCall, Report
from uwf_git.agentkit.programs.playing import (
    PROVIDER_VARIABLES,
    SERVER,
    adapter_main,
    find_mcp_entry,
    option,
)
from uwf_git.agentkit.records import build_usage, find, find_first, find_last, tool_event
from uwf_git.agentkit.turn import (
    AdapterAnswer,
    AdapterQuestion,
    AskFailed,
    choose_permission,
    split_args,
)

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

_PERMISSIONS: dict[str, tuple[str, ...]] = {
    "workdir": ("--auto",),
    "auto": ("--auto",),
    "ask": (),
}
_RULES = "OPENCODE_PERMISSION"


def build(question: AdapterQuestion, _folder: str) -> ProgramCall:
    settings = question.settings
    permission = choose_permission(settings, _PERMISSIONS)
    # Without a title it calls the model for one.
    argv = ["opencode", "run", "--format", "json", "--title", "uwf", *_PERMISSIONS[permission]]
    argv += option("--model", settings.get("model"))
    argv += option("--session", question.session)
    environ = {"OPENCODE_DISABLE_AUTOUPDATE": "true", **_build_config(question)}
    if permission == "workdir" and not question.environ.get(_RULES):
        temporary = question.environ.get("TMPDIR") or "/tmp"  # noqa: S108 (nothing is written there by us)
        # Of two rules that match, the later one counts.
        elsewhere = {"*": "deny", os.path.join(temporary, "*"): "allow"}
        environ[_RULES] = json.dumps({"external_directory": elsewhere})
    return ProgramCall((*argv, *split_args(settings)), question.prompt, environ)


def read(ended: EndedProgram) -> Report:
    records = ended.read_records()
    steps = [record for record in records if record.get("type") == "step_finish"]
    end = find_last(records, "step_finish")
    last = find(end, str, "part", "messageID")
    answer = AdapterAnswer(
        text="\n\n".join(
            find(record, str, "part", "text") or ""
            for record in records
            if record.get("type") == "text" and find(record, str, "part", "messageID") == last
        ),
        session=find_first(records, "sessionID"),
        usage=_read_usage(steps),
        trace=tuple(_trace(records, last)),
    )
    # It recovered from an error that an end follows.
    ends = [record for record in records if record.get("type") in ("error", "step_finish")]
    if ends and ends[-1].get("type") == "error":
        error = find(ends[-1], dict, "error")
        words = find(error, str, "data", "message") or find(error, str, "name") or ""
        return Report(answer, error=words, status=find(error, int, "data", "statusCode"))
    reason = find(end, str, "part", "reason")
    tools = [event for event in answer.trace if event["type"] == "tool"]
    refused = [event for event in tools if "rejected permission" in str(event["output"])]
    if reason != "stop" and refused and not ended.run.exit_code:
        message = f"opencode stopped because the tool {refused[-1]['name']} was refused"
        hint = "allow it in opencode's configuration, or set permission=auto"
        raise AskFailed("refused-permission", message, hint=hint, partial=answer)
    if reason == "length":
        message = "opencode's model stopped at its longest answer"
        raise AskFailed("too-long", message, partial=answer)
    return Report(answer, has_end=reason == "stop")


def _build_config(question: AdapterQuestion) -> dict[str, str]:
    """Add our MCP server to the configuration in the environment, if there is one."""
    entry = find_mcp_entry(question)
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


def _trace(records: list[dict[str, Any]], last: str | None) -> Iterator[dict[str, Any]]:
    for record in records:
        kind = record.get("type")
        if kind == "tool_use":
            state = find(record, dict, "part", "state")
            yield tool_event(
                find(record, str, "part", "tool"),
                find(state, dict, "input"),
                find(state, str, "output") or find(state, str, "error"),
                ok=find(state, str, "status") == "completed",
            )
        elif kind == "text" and find(record, str, "part", "messageID") != last:
            yield {"type": "message", "text": find(record, str, "part", "text")}


ADAPTER = CommandAdapter(
    name="opencode",
    build=build,
    read=read,
    tell=lambda record: _trace([record], None),
    takes_mcp=True,
    environ=("OPENCODE_*", *PROVIDER_VARIABLES),
    install="npm install -g opencode-ai",
    login="opencode auth login, or the key of its provider in the environment",
    lost_session="Session not found",
    final="answer",
)

main = adapter_main(ADAPTER, about=_ABOUT, keys=ADAPTER.keys)
