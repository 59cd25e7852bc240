"""uwf-gemini: Google's Gemini CLI plays a role.

Only the record `result` is the verdict. A terminated gemini exits with 0 and prints none; after a
failure of the endpoint it exits with the HTTP status modulo 256.
`uwf mcp` is not attached: gemini reads MCP servers only from its settings. A settings file of the
run, named by GEMINI_CLI_SYSTEM_SETTINGS_PATH or GEMINI_CLI_SYSTEM_DEFAULTS_PATH, is skipped (0.61)
unless root owns it and all folders above it, and would replace the administrator's.
GEMINI_CLI_HOME moves the login and the sessions too. The help names the two ways that work: an
entry that the user makes once, and `uwf-acp`, which passes servers with the session.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.agentkit.extraction.adapter import (
    AdapterAnswer,
    AdapterQuestion,
    AskFailed,
    FailureKind,
)
from uwf_git.agentkit.extraction.records import build_usage, find, find_last, parse_lines
from uwf_git.agentkit.programs.command_adapter import (
    CommandAdapter,
    EndedProgram,
    ProgramCall,
    adapter_main,
)
from uwf_git.agentkit.programs.failures import (
    explain_no_record,
    explain_words,
    require_good_end,
    require_words,
)
from uwf_git.agentkit.programs.options import option
from uwf_git.agentkit.settings import split_args

_ABOUT = """\
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

_PERMISSION = "auto_edit"

_LOGIN = "start `gemini` once to log in, or set GEMINI_API_KEY"
_STATUSES: dict[int, FailureKind] = {41: "auth", 42: "usage", 53: "no-result", 55: "usage"}
_HINTS = {
    41: _LOGIN,
    53: "model.maxSessionTurns in its settings gives it more turns",
}
_TURN_LIMIT = "FatalTurnLimitedError"

# 400 to 511 modulo 256.
_HTTP_STATUSES = range(144, 256)

_NO_SESSION = "Error resuming session"


def build(question: AdapterQuestion, _folder: str) -> ProgramCall:
    """Build the call for *question*."""
    settings = question.settings
    argv = ["gemini", "--output-format", "stream-json", "--skip-trust"]
    argv += ["--approval-mode", settings.get("permission") or _PERMISSION]
    argv += option("--model", settings.get("model"))
    argv += option("--resume", question.session)
    # Otherwise it restarts itself as a process that signals do not reach.
    environ = {"GEMINI_CLI_NO_RELAUNCH": "true"}
    given = question.prompt.encode(errors="replace")
    return ProgramCall((*argv, *split_args(settings)), given, environ)


def parse(ended: EndedProgram) -> AdapterAnswer:
    """Read the answer; raise AskFailed if the program reports a failure or no end."""
    records = parse_lines(ended.run.stdout)
    result = find_last(records, "result")
    answer = _read_answer(result, records)
    if result is None:
        raise _explain_none(ended, answer)
    if result.get("status") != "success":
        raise _explain_failure(result, ended.run.exit_code, answer)
    require_good_end("gemini", ended, answer, after="result")
    require_words("gemini", answer)
    return answer


def _read_answer(result: Mapping[str, Any] | None, records: list[dict[str, Any]]) -> AdapterAnswer:
    trace = tuple(_read_trace(records))
    said = [event["text"] for event in trace if event["type"] == "message"]
    return AdapterAnswer(
        # The texts before its tools announce what it is going to do.
        text=said[-1] if said else "",
        session=find(find_last(records, "init"), str, "session_id"),
        usage=_read_usage(result),
        trace=trace,
    )


def _read_usage(result: Mapping[str, Any] | None) -> dict[str, Any]:
    stats = find(result, dict, "stats")
    return build_usage(
        inputTokens=find(stats, int, "input_tokens"),
        outputTokens=find(stats, int, "output_tokens"),
        cachedInputTokens=find(stats, int, "cached"),
    )


def _read_trace(records: list[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
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
            yield _read_tool(record, results.get(find(record, str, "tool_id"), {}))


def _read_tool(call: Mapping[str, Any], done: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "tool",
        "name": call.get("tool_name"),
        "input": call.get("parameters"),
        "output": done.get("output") or done.get("error"),
        "ok": done.get("status") == "success",
    }


def _explain_failure(result: Mapping[str, Any], status: int, answer: AdapterAnswer) -> AskFailed:
    words = find(result, str, "error", "message") or _find_last_warning(answer)
    if find(result, str, "error", "type") == _TURN_LIMIT:
        return AskFailed("no-result", f"gemini: {words}", hint=_HINTS[53], partial=answer)
    told = status + 256 if status in _HTTP_STATUSES else None
    return explain_words("gemini", words, status=told, login=_LOGIN, partial=answer)


def _find_last_warning(answer: AdapterAnswer) -> str:
    warnings = [event["message"] for event in answer.trace if event["type"] == "warning"]
    return warnings[-1] or "" if warnings else ""


def _explain_none(ended: EndedProgram, answer: AdapterAnswer) -> AskFailed:
    failure = explain_no_record("gemini", ended, login=_LOGIN, partial=answer)
    if _NO_SESSION.encode() in ended.run.stderr:
        return AskFailed("no-session", failure.message)
    kind = _STATUSES.get(ended.run.exit_code)
    if kind is None:
        return failure
    hint = _HINTS.get(ended.run.exit_code)
    return AskFailed(kind, failure.message, hint=hint, partial=failure.partial)


_VARIABLES = (
    "GEMINI_*", "GOOGLE_API_KEY", "GOOGLE_GEMINI_*", "GOOGLE_GENAI_*", "GOOGLE_CLOUD_*",
    "GOOGLE_VERTEX_*", "GOOGLE_APPLICATION_CREDENTIALS",
)  # fmt: skip

ADAPTER = CommandAdapter(
    name="gemini",
    programs=("gemini",),
    build=build,
    parse=parse,
    resumes=True,
    environ=_VARIABLES,
    install="npm install -g @google/gemini-cli, then `gemini` once to log in",
)

main = adapter_main(ADAPTER, about=_ABOUT)

if __name__ == "__main__":
    sys.exit(main())
