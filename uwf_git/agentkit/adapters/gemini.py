"""uwf-gemini: Google's Gemini CLI plays a role.

Only the record `result` is the verdict. A terminated gemini exits with 0 and prints none; after a
failure of the endpoint it exits with the HTTP status modulo 256.
`uwf mcp` is not attached: gemini reads MCP servers only from its settings. A settings file of the
run, named by GEMINI_CLI_SYSTEM_SETTINGS_PATH or GEMINI_CLI_SYSTEM_DEFAULTS_PATH, is skipped (0.61)
unless root owns it and all folders above it, and would replace the administrator's.
GEMINI_CLI_HOME moves the login and the sessions too. The help names the two ways that work: an
entry that the user makes once, and `uwf-acp`, which passes servers with the session.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.agentkit.programs.command import CommandAdapter, EndedProgram, ProgramCall, Report
from uwf_git.agentkit.programs.playing import adapter_main, option
from uwf_git.agentkit.records import find, find_last, read_usage, tool_event
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, AskFailed, FailureKind, split_args

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

_LOGIN = "start `gemini` once to log in, or set GEMINI_API_KEY"
_MORE_TURNS = "model.maxSessionTurns in its settings gives it more turns"
_STATUSES: dict[int, tuple[FailureKind, str | None]] = {
    41: ("auth", _LOGIN),
    42: ("usage", None),
    53: ("no-result", _MORE_TURNS),
    55: ("usage", None),
}
_TURN_LIMIT = "FatalTurnLimitedError"
_NO_SESSION = "Error resuming session"

# 400 to 511 modulo 256.
_HTTP_STATUSES = range(144, 256)


def build(question: AdapterQuestion, _folder: str) -> ProgramCall:
    settings = question.settings
    argv = ["gemini", "--output-format", "stream-json", "--skip-trust"]
    argv += ["--approval-mode", settings.get("permission") or "auto_edit"]
    argv += option("--model", settings.get("model"))
    argv += option("--resume", question.session)
    # Otherwise it restarts itself as a process that signals do not reach.
    environ = {"GEMINI_CLI_NO_RELAUNCH": "true"}
    return ProgramCall((*argv, *split_args(settings)), question.prompt, environ)


def read(ended: EndedProgram) -> Report:
    records = ended.read_records()
    result, status = find_last(records, "result"), ended.run.exit_code
    trace = tuple(_read_trace(records))
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
        if status in _STATUSES and _NO_SESSION.encode() not in ended.run.stderr:
            kind, hint = _STATUSES[status]
            words = ended.explain_no_record("gemini", login=_LOGIN).message
            raise AskFailed(kind, words, hint=hint, partial=answer)
        return Report(answer, has_end=False)
    if result.get("status") == "success":
        return Report(answer)
    warnings = [event["message"] for event in trace if event["type"] == "warning"]
    words = find(result, str, "error", "message") or (warnings[-1] if warnings else "") or ""
    if find(result, str, "error", "type") == _TURN_LIMIT:
        raise AskFailed("no-result", f"gemini: {words}", hint=_MORE_TURNS, partial=answer)
    return Report(answer, error=words, status=status + 256 if status in _HTTP_STATUSES else None)


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
            done = results.get(find(record, str, "tool_id"), {})
            yield tool_event(
                record.get("tool_name"),
                record.get("parameters"),
                done.get("output") or done.get("error"),
                ok=done.get("status") == "success",
            )


def _tell(record: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    if record.get("type") == "message" and record.get("role") == "assistant":
        yield {"type": "piece", "text": find(record, str, "content")}
    elif record.get("type") != "message":
        yield from _read_trace([record])


ADAPTER = CommandAdapter(
    name="gemini",
    build=build,
    read=read,
    tell=_tell,
    environ=(
        "GEMINI_*", "GOOGLE_API_KEY", "GOOGLE_GEMINI_*", "GOOGLE_GENAI_*", "GOOGLE_CLOUD_*",
        "GOOGLE_VERTEX_*", "GOOGLE_APPLICATION_CREDENTIALS",
    ),
    install="npm install -g @google/gemini-cli, then `gemini` once to log in",
    login=_LOGIN,
    lost_session=_NO_SESSION,
)  # fmt: skip

main = adapter_main(ADAPTER, about=_ABOUT)
