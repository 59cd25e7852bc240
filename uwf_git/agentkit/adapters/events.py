"""Programs that print events play roles: gemini, opencode and copilot."""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.agentkit import turn
from uwf_git.agentkit.programs import playing
from uwf_git.agentkit.programs.command import CommandAdapter, EndedProgram, ProgramCall, Report
from uwf_git.agentkit.records import (
    build_usage,
    find,
    find_first,
    find_last,
    read_last,
    read_usage,
    tool_event,
)
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, AskFailed, FailureKind
from uwf_git.plan.hooks import list_words_of_turn

# uwf-gemini: Google's Gemini CLI plays a role.
#
# Only the record `result` is the verdict. A terminated gemini exits with 0 and prints none; after a
# failure of the endpoint it exits with the HTTP status modulo 256.
# `uwf mcp` is not attached: gemini reads MCP servers only from its settings. A settings file of the
# run, named by GEMINI_CLI_SYSTEM_SETTINGS_PATH or GEMINI_CLI_SYSTEM_DEFAULTS_PATH, is skipped
# (0.61) unless root owns it and all folders above it, and would replace the administrator's.
# GEMINI_CLI_HOME moves the login and the sessions too. The help names the two ways that work: an
# entry that the user makes once, and `uwf-acp`, which passes servers with the session.

_GEMINI_ABOUT = """\
Play roles with Google's Gemini CLI, in the thread's work directory, which it is told to
trust: the directory's own .gemini/ counts.

What it may do (--permission); nothing is asked, since no person is there to answer:
  auto_edit  read, and edit files in the work directory; it is offered no commands. The
             default.
  yolo       everything that you may do, commands as well
  plan       read only
  default    read only: whatever else would have to be asked for
For a role that has to run commands: uwf.gemini.ROLE.permission yolo.

It takes MCP servers from its settings alone. To let it use the tools of `uwf mcp` in every
turn, say once:  gemini mcp add --scope user --trust uwf uwf mcp
Or call it by  uwf-acp 'gemini --acp',  which attaches them to the turn.
"""

_GEMINI_LOGIN = "start `gemini` once to log in, or set GEMINI_API_KEY"
_MORE_TURNS = "model.maxSessionTurns in its settings gives it more turns"
_GEMINI_STATUSES: dict[int, tuple[FailureKind, str | None]] = {
    41: ("auth", _GEMINI_LOGIN),
    42: ("usage", None),
    53: ("no-result", _MORE_TURNS),
    55: ("usage", None),
}
_GEMINI_NO_SESSION = "Error resuming session"

# 400 to 511 modulo 256.
_HTTP_STATUSES = range(144, 256)


def build_gemini(question: AdapterQuestion, _folder: str) -> ProgramCall:
    settings = question.settings
    argv = ["gemini", "--output-format", "stream-json", "--skip-trust"]
    argv += ["--approval-mode", settings.get("permission") or "auto_edit"]
    argv += playing.option("--model", settings.get("model"))
    argv += playing.option("--resume", question.session)
    # Otherwise it restarts itself as a process that signals do not reach.
    environ = {"GEMINI_CLI_NO_RELAUNCH": "true"}
    return ProgramCall((*argv, *turn.split_args(settings)), question.prompt, environ)


def read_gemini(ended: EndedProgram) -> Report:
    records = ended.read_records()
    result, status = find_last(records, "result"), ended.run.exit_code
    trace = tuple(_read_gemini_trace(records))
    said = [event["text"] for event in trace if event["type"] == "message"]
    answer = AdapterAnswer(
        # The texts before its tools announce what it is going to do.
        text=said[-1] if said else "",
        session=find(find_last(records, "init"), str, "session_id"),
        usage=read_usage(
            find(result, dict, "stats"),
            inputTokens="input_tokens",
            outputTokens="output_tokens",
            cachedInputTokens="cached",
        ),
        trace=trace,
    )
    if result is None:
        if status in _GEMINI_STATUSES and _GEMINI_NO_SESSION.encode() not in ended.run.stderr:
            kind, hint = _GEMINI_STATUSES[status]
            words = ended.explain_no_record("gemini", login=_GEMINI_LOGIN).message
            raise AskFailed(kind, words, hint=hint, partial=answer)
        return Report(answer, has_end=False)
    if result.get("status") == "success":
        return Report(answer)
    warnings = [event["message"] for event in trace if event["type"] == "warning"]
    words = find(result, str, "error", "message") or (warnings[-1] if warnings else "") or ""
    if find(result, str, "error", "type") == "FatalTurnLimitedError":
        raise AskFailed("no-result", f"gemini: {words}", hint=_MORE_TURNS, partial=answer)
    return Report(answer, error=words, status=status + 256 if status in _HTTP_STATUSES else None)


def _read_gemini_trace(records: list[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield its messages (which come in pieces), its tools, and its warnings."""
    results = {
        find(each, str, "tool_id"): each for each in records if each.get("type") == "tool_result"
    }
    said = ""
    for record in [*records, {}]:
        if record.get("type") == "message":
            is_own = record.get("role") == "assistant"
            said += find(record, str, "content") or "" if is_own else ""
            continue
        if record.get("type") == "error":
            yield {"type": "warning", "message": find(record, str, "message")}
            continue
        if said.strip():
            yield {"type": "message", "text": said}
        said = ""
        if record.get("type") == "tool_use":
            done = results.get(find(record, str, "tool_id"), {})
            yield tool_event(
                record.get("tool_name"),
                record.get("parameters"),
                done.get("output") or done.get("error"),
                ok=done.get("status") == "success",
            )


def _tell_gemini(record: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    if record.get("type") == "message" and record.get("role") == "assistant":
        yield {"type": "piece", "text": find(record, str, "content")}
    elif record.get("type") != "message":
        yield from _read_gemini_trace([record])


GEMINI = CommandAdapter(
    name="gemini",
    build=build_gemini,
    read=read_gemini,
    tell=_tell_gemini,
    environ=(
        "GEMINI_*", "GOOGLE_API_KEY", "GOOGLE_GEMINI_*", "GOOGLE_GENAI_*", "GOOGLE_CLOUD_*",
        "GOOGLE_VERTEX_*", "GOOGLE_APPLICATION_CREDENTIALS",
    ),
    install="npm install -g @google/gemini-cli, then `gemini` once to log in",
    login=_GEMINI_LOGIN,
    lost_session=_GEMINI_NO_SESSION,
)  # fmt: skip

gemini_main = playing.adapter_main(GEMINI, about=_GEMINI_ABOUT)


# uwf-opencode: opencode plays a role.
#
# No record closes its events, so the answer is the text of the last step, if that ended with the
# reason "stop". It exits with 0 too when a tool was refused and the work is half done: a refusal by
# a person ends the run, one by a rule does not.

_OPENCODE_ABOUT = """\
Play roles with opencode (`opencode run`), in the thread's work directory. Models are named as
opencode names them: provider/model.

What it may do (--permission); nothing is asked, since no person is there to answer:
  workdir   everything that its configuration does not deny, on files in the work directory
            and the temporary one; it looks for paths in commands too, but finds not all.
            The default. With a variable OPENCODE_PERMISSION of your own: as auto.
  auto      everything that its configuration does not deny
  ask       only what its configuration allows; all else is refused, and ends the attempt
"""

_OPENCODE_PERMISSIONS: dict[str, tuple[str, ...]] = {
    "workdir": ("--auto",),
    "auto": ("--auto",),
    "ask": (),
}
_RULES = "OPENCODE_PERMISSION"


def build_opencode(question: AdapterQuestion, _folder: str) -> ProgramCall:
    settings = question.settings
    permission = turn.choose_permission(settings, _OPENCODE_PERMISSIONS)
    # Without a title it calls the model for one.
    argv = ["opencode", "run", "--format", "json", "--title", "uwf"]
    argv += _OPENCODE_PERMISSIONS[permission]
    argv += playing.option("--model", settings.get("model"))
    argv += playing.option("--session", question.session)
    environ = {"OPENCODE_DISABLE_AUTOUPDATE": "true", **_build_config(question)}
    if permission == "workdir" and not question.environ.get(_RULES):
        temporary = question.environ.get("TMPDIR") or "/tmp"  # noqa: S108 (nothing is written there by us)
        # Of two rules that match, the later one counts.
        elsewhere = {"*": "deny", os.path.join(temporary, "*"): "allow"}
        environ[_RULES] = json.dumps({"external_directory": elsewhere})
    return ProgramCall((*argv, *turn.split_args(settings)), question.prompt, environ)


def read_opencode(ended: EndedProgram) -> Report:
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
        usage=_read_opencode_usage(steps),
        trace=tuple(_read_opencode_trace(records, last)),
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
    entry = playing.find_mcp_entry(question)
    if entry is None:
        return {}
    try:
        config = json.loads(question.environ.get("OPENCODE_CONFIG_CONTENT") or "{}")
        servers = config.setdefault("mcp", {})
        servers[playing.SERVER] = {
            "type": "local",
            "command": [entry["command"], *entry["args"]],
            "environment": entry["env"],
            "enabled": True,
        }
    except (ValueError, AttributeError, TypeError):
        # The user's own; opencode reports what is wrong with it.
        return {}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config)}


def _read_opencode_usage(steps: list[dict[str, Any]]) -> dict[str, Any]:
    if not steps:
        return {}
    # It reports 0 for a model whose price it does not know.
    cost = sum(find(step, float, "part", "cost") or 0 for step in steps)
    return build_usage(
        inputTokens=_sum_opencode(steps, "input"),
        outputTokens=_sum_opencode(steps, "output"),
        reasoningTokens=_sum_opencode(steps, "reasoning"),
        cachedInputTokens=_sum_opencode(steps, "cache", "read"),
        costUsd=cost or None,
        turns=len(steps),
    )


def _sum_opencode(steps: list[dict[str, Any]], *path: str) -> int | None:
    found = [find(step, int, "part", "tokens", *path) for step in steps]
    return None if None in found else sum(number for number in found if number is not None)


def _read_opencode_trace(
    records: list[dict[str, Any]], last: str | None
) -> Iterator[dict[str, Any]]:
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


OPENCODE = CommandAdapter(
    name="opencode",
    build=build_opencode,
    read=read_opencode,
    tell=lambda record: _read_opencode_trace([record], None),
    takes_mcp=True,
    environ=("OPENCODE_*", *playing.PROVIDER_VARIABLES),
    install="npm install -g opencode-ai",
    login="opencode auth login, or the key of its provider in the environment",
    lost_session="Session not found",
    final="answer",
)

opencode_main = playing.adapter_main(OPENCODE, about=_OPENCODE_ABOUT, keys=OPENCODE.keys)


# uwf-copilot: GitHub Copilot CLI plays a role.
#
# Only its event ``result`` with the exit code 0 is the verdict: the program exits with 0 when it is
# terminated. The usage, in a file of its own, is that of the whole session.

_COPILOT_ABOUT = """\
Play roles with GitHub Copilot CLI, in the thread's work directory. It needs a login (`copilot
login`, GH_TOKEN), or an endpoint of your own: COPILOT_OFFLINE and COPILOT_PROVIDER_BASE_URL.

What it may do (--permission); nothing is asked, since no person is there to answer:
  allow-all-tools   any tool, on files in the work directory and the temporary one. The default.
  allow-all         any tool on any file and URL
  none              only what its configuration allows; all else is refused
To refuse some: --args '--deny-tool "shell(git push)"'.
"""

_COPILOT_PERMISSIONS: dict[str, tuple[str, ...]] = {
    "allow-all-tools": ("--allow-all-tools",),
    "allow-all": ("--allow-all",),
    "none": (),
}

_USAGE_FILE = "usage.json"


def build_copilot(question: AdapterQuestion, folder: str) -> ProgramCall:
    settings = question.settings
    permission = turn.choose_permission(settings, _COPILOT_PERMISSIONS)
    usage_file = os.path.abspath(os.path.join(folder, _USAGE_FILE))
    argv = ["copilot", "--output-format", "json", *_COPILOT_PERMISSIONS[permission]]
    argv += ["--no-ask-user", "--no-auto-update", "--usage-output-file", usage_file]
    argv += playing.option("--model", settings.get("model"))
    if question.session is not None:
        argv.append(f"--resume={question.session}")
    servers = playing.mcp_servers_json(question, type="stdio", tools=["*"])
    argv += playing.option("--additional-mcp-config", servers)
    argv += list_words_of_turn("copilot", question.environ)
    return ProgramCall((*argv, *turn.split_args(settings)), question.prompt)


def read_copilot(ended: EndedProgram) -> Report:
    records = ended.read_records()
    result = find_last(records, "result")
    said = [_text_of(record) for record in records if _is_said(record)]
    trace = tuple(_read_copilot_trace(records))
    answer = AdapterAnswer(
        text=said[-1] if said else "",
        session=find(result, str, "sessionId"),
        usage=_read_copilot_usage(ended.folder),
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


def _text_of(record: dict[str, Any]) -> str:
    return find(record, str, "data", "content") or ""


def _read_copilot_usage(folder: str) -> dict[str, Any]:
    """Read the usage of its whole session so far."""
    told = read_last(folder, _USAGE_FILE)
    models = [each for each in (find(told, dict, "modelMetrics") or {}).values() if each]
    if not models:
        return {}
    return build_usage(
        inputTokens=_sum_copilot(models, "usage", "inputTokens"),
        outputTokens=_sum_copilot(models, "usage", "outputTokens"),
        cachedInputTokens=_sum_copilot(models, "usage", "cacheReadTokens"),
        turns=_sum_copilot(models, "requests", "count"),
        premiumRequests=find(told, float, "totalPremiumRequestCost"),
    )


def _sum_copilot(models: list[dict[str, Any]], *path: str) -> int | None:
    found = [number for model in models if (number := find(model, int, *path)) is not None]
    return sum(found) if found else None


def _read_copilot_trace(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
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
        elif kind == "assistant.message" and _text_of(record):
            # Its answer asks for no tools.
            asked = find(record, list, "data", "toolRequests")
            if asked or not _is_said(record):
                yield {"type": "message", "text": _text_of(record)}
        elif kind == "model.call_failure":
            status = find(record, int, "data", "statusCode")
            yield {"type": "warning", "message": f"a call of the model failed: HTTP {status}"}


def _tell_copilot(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if record.get("type") == "assistant.message":
        yield {"type": "message", "text": _text_of(record)}
    elif record.get("type") == "tool.execution_start":
        name, given = find(record, str, "data", "toolName"), find(record, dict, "data", "arguments")
        yield tool_event(name, given, None, ok=True)


COPILOT = CommandAdapter(
    name="copilot",
    # The platform's own binary needs no Node and no launcher.
    programs=("copilot", "copilot-linux-x64"),
    build=build_copilot,
    read=read_copilot,
    tell=_tell_copilot,
    takes_mcp=True,
    # Named one by one: it sets many others for its children, which must not reach a nested copilot.
    environ=(
        "COPILOT_HOME", "COPILOT_MODEL", "COPILOT_OFFLINE", "COPILOT_PROVIDER_*",
        "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST", "COPILOT_GH_HOST",
        "COPILOT_AUTO_TIER", "COPILOT_CUSTOM_INSTRUCTIONS_DIRS", "COPILOT_CACHE_HOME",
    ),
    install="npm install -g @github/copilot",
    login="copilot login, or GH_TOKEN, or COPILOT_PROVIDER_API_KEY for an endpoint of your own",
    lost_session="No session, task, or name matched",
    anew=(),
)  # fmt: skip

copilot_main = playing.adapter_main(COPILOT, about=_COPILOT_ABOUT, keys=COPILOT.keys)
