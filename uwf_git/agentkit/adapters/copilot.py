"""uwf-copilot: GitHub Copilot CLI plays a role.

Only its event ``result`` with the exit code 0 is the verdict: the program exits with 0 when it is
terminated. The usage, in a file of its own, is that of the whole session.
"""

import os
from collections.abc import Iterator
from typing import Any

from uwf_git.agentkit.programs.command import CommandAdapter, EndedProgram, ProgramCall, Report
from uwf_git.agentkit.programs.playing import adapter_main, mcp_servers_json, option
from uwf_git.agentkit.records import build_usage, find, find_last, read_last, tool_event
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, choose_permission, split_args
from uwf_git.plan.hooks import list_words_of_turn

_ABOUT = """\
Play roles with GitHub Copilot CLI, in the thread's work directory. It needs a login (`copilot
login`, GH_TOKEN), or an endpoint of your own: COPILOT_OFFLINE and COPILOT_PROVIDER_BASE_URL.

What it may do (--permission); nothing is asked, since no person is there to answer:
  allow-all-tools   any tool, on files in the work directory and the temporary one. The default.
  allow-all         any tool on any file and URL
  none              only what its configuration allows; all else is refused
To refuse some: --args '--deny-tool "shell(git push)"'.
"""

_PERMISSIONS: dict[str, tuple[str, ...]] = {
    "allow-all-tools": ("--allow-all-tools",),
    "allow-all": ("--allow-all",),
    "none": (),
}

_USAGE_FILE = "usage.json"


def build(question: AdapterQuestion, folder: str) -> ProgramCall:
    settings = question.settings
    permission = choose_permission(settings, _PERMISSIONS)
    usage_file = os.path.abspath(os.path.join(folder, _USAGE_FILE))
    argv = ["copilot", "--output-format", "json", *_PERMISSIONS[permission]]
    argv += ["--no-ask-user", "--no-auto-update", "--usage-output-file", usage_file]
    argv += option("--model", settings.get("model"))
    if question.session is not None:
        argv.append(f"--resume={question.session}")
    config = mcp_servers_json(question, type="stdio", tools=["*"])
    argv += option("--additional-mcp-config", config)
    argv += list_words_of_turn("copilot", question.environ)
    return ProgramCall((*argv, *split_args(settings)), question.prompt)


def read(ended: EndedProgram) -> Report:
    records = ended.read_records()
    result = find_last(records, "result")
    said = [_text(record) for record in records if _is_said(record)]
    trace = tuple(_trace(records))
    answer = AdapterAnswer(
        text=said[-1] if said else "",
        session=find(result, str, "sessionId"),
        usage=_read_usage(ended.folder),
        trace=trace,
    )
    if find(result, int, "exitCode") == 0 and not ended.run.exit_code:
        is_refused = any(event["type"] == "tool" and not event["ok"] for event in trace)
        return Report(answer, is_refused=is_refused)
    error = find_last(records, "session.error")
    failure = find_last(records, "model.call_failure")
    if error is None and failure is None:
        return Report(answer, has_end=False)
    status = find(failure, int, "data", "statusCode")
    words = find(error, str, "data", "message") or f"the model's endpoint answered HTTP {status}"
    return Report(answer, error=words, status=status)


def _is_said(record: dict[str, Any]) -> bool:
    """Return whether the agent itself said this, not a sub-agent."""
    is_message = record.get("type") == "assistant.message"
    return is_message and not find(record, str, "data", "parentToolCallId")


def _text(record: dict[str, Any]) -> str:
    return find(record, str, "data", "content") or ""


def _read_usage(folder: str) -> dict[str, Any]:
    """Read the usage of its whole session so far."""
    told = read_last(folder, _USAGE_FILE)
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


def _trace(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    calls: dict[str | None, dict[str, Any]] = {}
    for record in records:
        kind, name = record.get("type"), find(record, str, "data", "toolCallId")
        if kind == "tool.execution_start":
            calls[name] = record
        elif kind == "tool.execution_complete":
            call = calls.get(name, {})
            yield tool_event(
                find(call, str, "data", "toolName"),
                find(call, dict, "data", "arguments"),
                find(record, str, "data", "result", "content")
                or find(record, str, "data", "error", "message"),
                ok=find(record, bool, "data", "success") is True,
            )
        elif kind == "assistant.message" and _text(record):
            # Its answer asks for no tools.
            asked = find(record, list, "data", "toolRequests")
            if asked or not _is_said(record):
                yield {"type": "message", "text": _text(record)}
        elif kind == "model.call_failure":
            status = find(record, int, "data", "statusCode")
            yield {"type": "warning", "message": f"a call of the model failed: HTTP {status}"}


def _tell(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if record.get("type") == "assistant.message":
        yield {"type": "message", "text": _text(record)}
    elif record.get("type") == "tool.execution_start":
        name, given = find(record, str, "data", "toolName"), find(record, dict, "data", "arguments")
        yield tool_event(name, given, None, ok=True)


# Named one by one: it sets many others for its children, which must not reach a nested copilot.
_ENVIRON = (
    "COPILOT_HOME", "COPILOT_MODEL", "COPILOT_OFFLINE", "COPILOT_PROVIDER_*",
    "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST", "COPILOT_GH_HOST",
    "COPILOT_AUTO_TIER", "COPILOT_CUSTOM_INSTRUCTIONS_DIRS", "COPILOT_CACHE_HOME",
)  # fmt: skip

ADAPTER = CommandAdapter(
    name="copilot",
    # The platform's own binary needs no Node and no launcher.
    programs=("copilot", "copilot-linux-x64"),
    build=build,
    read=read,
    tell=_tell,
    takes_mcp=True,
    environ=_ENVIRON,
    install="npm install -g @github/copilot",
    login="copilot login, or GH_TOKEN, or COPILOT_PROVIDER_API_KEY for an endpoint of your own",
    lost_session="No session, task, or name matched",
    anew=(),
)

main = adapter_main(ADAPTER, about=_ABOUT, keys=ADAPTER.keys)
