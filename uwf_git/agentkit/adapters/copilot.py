"""uwf-copilot: GitHub Copilot CLI plays a role.

Owns: how `copilot` is called without a terminal, and what its events mean.
Knows nothing of: running it.
Always true: only its event ``result`` with the exit code 0 is the verdict: the program itself ends
with exit status 0 when it is terminated. What it tells of tokens, in a file of its own, counts on
over a resumed session.
"""

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
from uwf_git.agentkit.records import build_usage, find, parse_lines, read_last
from uwf_git.agentkit.settings import choose_permission, split_args

_ABOUT = """\
Play roles with GitHub Copilot CLI, in the thread's work directory. It needs a login (`copilot
login`, GH_TOKEN), or an endpoint of your own: COPILOT_OFFLINE and COPILOT_PROVIDER_BASE_URL.

What it may do without asking, since nobody is there to be asked (--permission):
  allow-all-tools   any tool, on files in the work directory and the temporary one. The default.
  allow-all         any tool on any file and URL
  none              only what its configuration allows; all else is refused
To refuse some: --args '--deny-tool "shell(git push)"'.
"""

_LOGIN = "copilot login, or GH_TOKEN, or COPILOT_PROVIDER_API_KEY for an endpoint of your own"

_KEYS = {"mcp": "off: do not offer it the tools of `uwf mcp`"}

_PERMISSIONS: dict[str, tuple[str, ...]] = {
    "allow-all-tools": ("--allow-all-tools",),
    "allow-all": ("--allow-all",),
    "none": (),
}

_USAGE_FILE = "usage.json"

Record = Mapping[str, Any]


def build(asked: Asked, folder: str) -> Command:
    """Build the call that asks *asked*.

    Raises:
        BadUsage: a setting is wrong.
    """
    settings = asked.settings
    permission = choose_permission(settings, _PERMISSIONS)
    usage_file = os.path.abspath(os.path.join(folder, _USAGE_FILE))
    argv = ["copilot", "--output-format", "json", *_PERMISSIONS[permission]]
    argv += ["--no-ask-user", "--no-auto-update", "--usage-output-file", usage_file]
    if settings.get("model"):
        argv += ["--model", settings["model"]]
    if asked.session is not None:
        argv.append(f"--resume={asked.session}")
    if find_mcp_entry(asked.environ, settings) is not None:
        config = mcp_servers_json(asked.environ, type="stdio", tools=["*"])
        argv += ["--additional-mcp-config", config]
    return Command((*argv, *split_args(settings)), asked.prompt.encode(errors="replace"))


def parse(ended: Ended) -> Answer:
    """Read what it printed, and the file that it left.

    Raises:
        NoAnswer: it says that it failed, or does not say that it has finished.
    """
    records = parse_lines(ended.run.stdout)
    results = [record for record in records if record.get("type") == "result"]
    said = [_text(record) for record in records if _is_said(record)]
    answer = Answer(
        text=said[-1] if said else "",
        session=find(results[-1], str, "sessionId") if results else None,
        usage=_read_usage(ended.folder),
        trace=tuple(_trace(records)),
    )
    status = find(results[-1], int, "exitCode") if results else None
    if status != 0 or ended.run.exit_code:
        raise _explain_failure(ended, records, answer)
    if not answer.text.strip():
        refused = any(record["type"] == "tool" and not record["ok"] for record in answer.trace)
        message = "copilot ended well, but said nothing"
        raise NoAnswer("refused-permission" if refused else "no-result", message, partial=answer)
    return answer


def _is_said(record: Record) -> bool:
    """Tell whether the agent itself said this, none of those that it set to work."""
    is_message = record.get("type") == "assistant.message"
    return is_message and not find(record, str, "data", "parentToolCallId")


def _text(record: Record) -> str:
    return find(record, str, "data", "content") or ""


def _read_usage(folder: str) -> dict[str, Any]:
    """Read what it has written down of its whole session, so far."""
    told = read_last(os.path.join(folder, _USAGE_FILE))
    models = [each for each in (find(told, dict, "modelMetrics") or {}).values() if each]
    if not models:
        return {}
    return build_usage(
        inputTokens=_sum(models, "usage", "inputTokens"),
        outputTokens=_sum(models, "usage", "outputTokens"),
        cachedInputTokens=_sum(models, "usage", "cacheReadTokens"),
        turns=_sum(models, "requests", "count"),
        premiumRequests=find(told, float, "totalPremiumRequestCost"),
    )


def _sum(models: list[dict[str, Any]], *path: str) -> int | None:
    found = [number for model in models if (number := find(model, int, *path)) is not None]
    return sum(found) if found else None


def _trace(records: list[dict[str, Any]]) -> Iterator[Record]:
    calls: dict[str | None, Record] = {}
    for record in records:
        kind, name = record.get("type"), find(record, str, "data", "toolCallId")
        if kind == "tool.execution_start":
            calls[name] = record
        elif kind == "tool.execution_complete":
            call = calls.get(name, {})
            yield {
                "type": "tool",
                "name": find(call, str, "data", "toolName"),
                "input": find(call, dict, "data", "arguments"),
                "ok": find(record, bool, "data", "success") is True,
                "output": find(record, str, "data", "result", "content")
                or find(record, str, "data", "error", "message"),
            }
        elif kind == "assistant.message" and _text(record) and not _is_final(record):
            yield {"type": "message", "text": _text(record)}
        elif kind == "model.call_failure":
            status = find(record, int, "data", "statusCode")
            yield {"type": "warning", "message": f"a call of the model failed: HTTP {status}"}


def _is_final(record: Record) -> bool:
    return _is_said(record) and not find(record, list, "data", "toolRequests")


def _explain_failure(ended: Ended, records: list[dict[str, Any]], answer: Answer) -> NoAnswer:
    if ended.asked.session is not None and b"No session, task, or name matched" in ended.run.stderr:
        return explain_unknown_session("copilot", ended)
    errors = [record for record in records if record.get("type") == "session.error"]
    failures = [record for record in records if record.get("type") == "model.call_failure"]
    if not errors and not failures:
        return explain_no_record("copilot", ended, login=_LOGIN, partial=answer)
    status = find(failures[-1], int, "data", "statusCode") if failures else None
    words = find(errors[-1], str, "data", "message") if errors else None
    words = words or f"the model's endpoint answered HTTP {status}"
    return explain_words("copilot", words, status=status, login=_LOGIN, partial=answer)


# One by one: it sets many others for what it starts, which must not reach another one.
_ENVIRON = (
    "COPILOT_HOME", "COPILOT_MODEL", "COPILOT_OFFLINE", "COPILOT_PROVIDER_*",
    "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST", "COPILOT_GH_HOST",
    "COPILOT_AUTO_TIER", "COPILOT_CUSTOM_INSTRUCTIONS_DIRS", "COPILOT_CACHE_HOME",
)  # fmt: skip

ADAPTER = CommandAdapter(
    name="copilot",
    # The platform's own binary needs no Node, and has no launcher above it.
    programs=("copilot", "copilot-linux-x64"),
    build=build,
    parse=parse,
    resumes=True,
    environ=_ENVIRON,
    install="npm install -g @github/copilot",
    usage_is_cumulative=True,
)

main = adapter_main(ADAPTER, about=_ABOUT, keys=_KEYS)

if __name__ == "__main__":
    sys.exit(main())
