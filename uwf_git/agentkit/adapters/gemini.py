"""uwf-gemini: Google's Gemini CLI plays a role.

Owns: how `gemini` is called, and what its records mean.
Knows nothing of: running it.
Always true: only the record `result` is the verdict. When it was asked to end it leaves with exit
status 0 and none; when the endpoint failed, with that one's HTTP status modulo 256.
`uwf mcp` is not attached: gemini takes MCP servers from its settings alone. Of these the variables
GEMINI_CLI_SYSTEM_SETTINGS_PATH and GEMINI_CLI_SYSTEM_DEFAULTS_PATH could name a file of a run, but
gemini (0.61) skips one that is not root's, with all folders above it, so it would work for root
alone; it would also stand in for the administrator's. GEMINI_CLI_HOME moves the login and the
sessions along. What is left is said in the help: an entry that the user makes once, whose server
sees the variables of every turn, and `uwf-acp`, which hands servers over with the session.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.agentkit.adapter import Answer, Asked, FailureKind, NoAnswer
from uwf_git.agentkit.command_adapter import Command, CommandAdapter, Ended, adapter_main
from uwf_git.agentkit.failure_words import (
    explain_no_record,
    explain_words,
    require_good_end,
    require_words,
)
from uwf_git.agentkit.records import build_usage, find, parse_lines
from uwf_git.agentkit.settings import split_args

_ABOUT = """\
Play roles with Google's Gemini CLI, in the thread's work directory, which it is told to
trust: the directory's own .gemini/ counts.

What it may do without asking, since nobody is there to be asked (--permission):
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

# What is left of 400 to 511 in eight bits.
_HTTP_STATUSES = range(144, 256)

_NO_SESSION = "Error resuming session"


def build(asked: Asked, _folder: str) -> Command:
    """Build the call that asks *asked*.

    Raises:
        BadUsage: a setting is wrong.
    """
    settings = asked.settings
    argv = ["gemini", "--output-format", "stream-json", "--skip-trust"]
    argv += ["--approval-mode", settings.get("permission") or _PERMISSION]
    if settings.get("model"):
        argv += ["--model", settings["model"]]
    if asked.session is not None:
        argv += ["--resume", asked.session]
    # It would start itself again, as a process that no signal reaches.
    environ = {"GEMINI_CLI_NO_RELAUNCH": "true"}
    given = asked.prompt.encode(errors="replace")
    return Command((*argv, *split_args(settings)), given, environ)


def parse(ended: Ended) -> Answer:
    """Read what it printed.

    Raises:
        NoAnswer: it says that it failed, or does not say that it has finished.
    """
    records = parse_lines(ended.run.stdout)
    result = next((each for each in records[::-1] if each.get("type") == "result"), None)
    answer = _read_answer(result, records)
    if result is None:
        raise _explain_none(ended, answer)
    if result.get("status") != "success":
        raise _explain_failure(result, ended.run.exit_code, answer)
    require_good_end("gemini", ended, answer, after="result")
    require_words("gemini", answer)
    return answer


def _read_answer(result: Mapping[str, Any] | None, records: list[dict[str, Any]]) -> Answer:
    begun = [each for each in records if each.get("type") == "init"]
    trace = tuple(_read_trace(records))
    said = [event["text"] for event in trace if event["type"] == "message"]
    return Answer(
        # What it says before it uses its tools is what it is about to do.
        text=said[-1] if said else "",
        session=find(begun[-1], str, "session_id") if begun else None,
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
    """Tell what it did: what it said (it comes in pieces), its tools, and its warnings."""
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


def _explain_failure(result: Mapping[str, Any], status: int, answer: Answer) -> NoAnswer:
    words = find(result, str, "error", "message") or _find_last_warning(answer)
    if find(result, str, "error", "type") == _TURN_LIMIT:
        return NoAnswer("no-result", f"gemini: {words}", hint=_HINTS[53], partial=answer)
    told = status + 256 if status in _HTTP_STATUSES else None
    return explain_words("gemini", words, status=told, login=_LOGIN, partial=answer)


def _find_last_warning(answer: Answer) -> str:
    warnings = [event["message"] for event in answer.trace if event["type"] == "warning"]
    return warnings[-1] or "" if warnings else ""


def _explain_none(ended: Ended, answer: Answer) -> NoAnswer:
    failure = explain_no_record("gemini", ended, login=_LOGIN, partial=answer)
    if _NO_SESSION.encode() in ended.run.stderr:
        return NoAnswer("no-session", failure.message)
    kind = _STATUSES.get(ended.run.exit_code)
    if kind is None:
        return failure
    hint = _HINTS.get(ended.run.exit_code)
    return NoAnswer(kind, failure.message, hint=hint, partial=failure.partial)


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
