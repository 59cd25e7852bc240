"""uwf-opencode: opencode plays a role.

Owns: how `opencode run` is called, and what its events mean.
Knows nothing of: running it.
Always true: there is no record that closes its events, so the answer is what was said in the last
step, if that ended with the reason "stop". Its exit status is 0 as well when a tool was refused
and the work lies half done: a refusal by a person ends it, one by a rule it works around.
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
    require_good_end,
    require_words,
)
from uwf_git.agentkit.mcp_config import SERVER, find_mcp_entry
from uwf_git.agentkit.provider_variables import PROVIDER_VARIABLES
from uwf_git.agentkit.records import build_usage, find, parse_lines
from uwf_git.agentkit.settings import choose_permission, split_args

_ABOUT = """\
Play roles with opencode (`opencode run`), in the thread's work directory. Models are named as
opencode names them: provider/model.

What it may do without asking, since nobody is there to be asked (--permission):
  workdir   everything that its configuration does not deny, on files in the work directory
            and the temporary one; it looks for paths in commands too, but finds not all.
            The default. With a variable OPENCODE_PERMISSION of your own: as auto.
  auto      everything that its configuration does not deny
  ask       only what its configuration allows; all else is refused, and ends the attempt
"""

_LOGIN = "opencode auth login, or the key of its provider in the environment"

_KEYS = {"mcp": "off: do not offer it the tools of `uwf mcp`"}

_PERMISSIONS: dict[str, tuple[str, ...]] = {
    "workdir": ("--auto",),
    "auto": ("--auto",),
    "ask": (),
}
_RULES = "OPENCODE_PERMISSION"

Record = Mapping[str, Any]


def build(asked: Asked, _folder: str) -> Command:
    """Build the call that asks *asked*.

    Raises:
        BadUsage: a setting is wrong.
    """
    settings = asked.settings
    permission = choose_permission(settings, _PERMISSIONS)
    # Without a title it asks the model for one.
    argv = ["opencode", "run", "--format", "json", "--title", "uwf", *_PERMISSIONS[permission]]
    if settings.get("model"):
        argv += ["--model", settings["model"]]
    if asked.session is not None:
        argv += ["--session", asked.session]
    environ = {"OPENCODE_DISABLE_AUTOUPDATE": "true", **_build_config(asked)}
    if permission == "workdir" and not asked.environ.get(_RULES):
        environ[_RULES] = _build_rules(asked.environ)
    given = asked.prompt.encode(errors="replace")
    return Command((*argv, *split_args(settings)), given, environ)


def parse(ended: Ended) -> Answer:
    """Read what it printed.

    Raises:
        NoAnswer: it says that it failed, or does not say that it has finished.
    """
    records = parse_lines(ended.run.stdout)
    steps = [record for record in records if record.get("type") == "step_finish"]
    last = find(steps[-1], str, "part", "messageID") if steps else None
    answer = Answer(
        text=_text_of(records, last),
        session=next(filter(None, (find(each, str, "sessionID") for each in records)), None),
        usage=_read_usage(steps),
        trace=tuple(_trace(records, last)),
    )
    # An error after which it went on to an end is none.
    ends = [record for record in records if record.get("type") in ("error", "step_finish")]
    if ends and ends[-1].get("type") == "error":
        raise _explain_error(ends[-1], answer)
    reason = find(steps[-1], str, "part", "reason") if steps else None
    if reason != "stop":
        raise _explain_stop(ended, reason, answer)
    require_good_end("opencode", ended, answer, after="answer")
    require_words("opencode", answer)
    return answer


def _build_config(asked: Asked) -> dict[str, str]:
    """Add our MCP server to the configuration that the environment may hold."""
    entry = find_mcp_entry(asked.environ, asked.settings)
    if entry is None:
        return {}
    try:
        config = json.loads(asked.environ.get("OPENCODE_CONFIG_CONTENT") or "{}")
        servers = config.setdefault("mcp", {})
        servers[SERVER] = {
            "type": "local",
            "command": [entry["command"], *entry["args"]],
            "environment": entry["env"],
            "enabled": True,
        }
    except (ValueError, AttributeError, TypeError):
        # It is the user's; opencode itself tells what is wrong with it.
        return {}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config)}


def _build_rules(environ: Mapping[str, str]) -> str:
    """Deny what lies elsewhere; of two rules that fit, the later one counts."""
    temporary = environ.get("TMPDIR") or "/tmp"  # noqa: S108 (nothing is written there by us)
    elsewhere = {"*": "deny", os.path.join(temporary, "*"): "allow"}
    return json.dumps({"external_directory": elsewhere})


def _text_of(records: list[dict[str, Any]], message: str | None) -> str:
    """Give what was said in one message of the model."""
    parts = [
        find(record, str, "part", "text") or ""
        for record in records
        if record.get("type") == "text" and find(record, str, "part", "messageID") == message
    ]
    return "\n\n".join(parts)


def _read_usage(steps: list[dict[str, Any]]) -> dict[str, Any]:
    if not steps:
        return {}
    # It says 0 of a model whose price it does not know.
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


def _explain_error(record: Record, answer: Answer) -> NoAnswer:
    words = find(record, str, "error", "data", "message") or find(record, str, "error", "name")
    status = find(record, int, "error", "data", "statusCode")
    return explain_words("opencode", words or "", status=status, login=_LOGIN, partial=answer)


def _explain_stop(ended: Ended, reason: str | None, answer: Answer) -> NoAnswer:
    if ended.asked.session is not None and b"Session not found" in ended.run.stderr:
        return explain_unknown_session("opencode", ended)
    refused = [event for event in answer.trace if _is_refusal(event)]
    if refused and not ended.run.exit_code:
        message = f"opencode stopped because the tool {refused[-1]['name']} was refused"
        hint = "allow it in opencode's configuration, or set permission=auto"
        return NoAnswer("refused-permission", message, hint=hint, partial=answer)
    if reason == "length":
        message = "opencode's model stopped at its longest answer"
        return NoAnswer("too-long", message, partial=answer)
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

main = adapter_main(ADAPTER, about=_ABOUT, keys=_KEYS)

if __name__ == "__main__":
    sys.exit(main())
