"""uwf-codex: OpenAI's Codex plays a role.

Only the event `turn.completed` is the verdict, and only without a later `turn.failed`. An item or
an event of type `error` is a warning. Codex does not check the requested object.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.agentkit.ladder import add_guide, build_wanted_object, read_answer
from uwf_git.agentkit.llm.messages import StrictSchema, derive_strict, restore
from uwf_git.agentkit.programs import playing
from uwf_git.agentkit.programs.command import CommandAdapter, EndedProgram, ProgramCall, Report
from uwf_git.agentkit.records import find, find_last, parse_last, read_usage, tool_event
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, split_args
from uwf_git.plan.hooks import list_words_of_turn

_ABOUT = """\
Play roles with OpenAI's Codex (`codex exec`), in the thread's work directory.

What it may do (--permission), by its sandbox; it never asks:
  read-only           read files and run commands that change nothing
  workspace-write     change files in the work directory and the temporary one, run
                      commands, and reach no network. The default.
  danger-full-access  everything that you may do
"""


_IN_WORDS = "codex does not take the role's schema; its fields were asked for in words"


def build(question: AdapterQuestion, folder: str) -> ProgramCall:
    settings = question.settings
    argv = ["codex", "exec", "--json", "--skip-git-repo-check"]
    argv += ["--sandbox", settings.get("permission") or "workspace-write"]
    argv += playing.option("--model", settings.get("model"))
    strict = _build_schema(question)
    if strict is not None:
        schema = json.dumps(strict.schema)
        argv += ["--output-schema", playing.write_file(folder, "schema.json", schema)]
    argv += playing.option("-c", playing.mcp_toml(question))
    hook = list_words_of_turn("codex", question.environ)
    argv += hook
    argv += split_args(settings)
    argv += playing.option("resume", question.session)
    prompt = question.prompt if strict is None else add_guide(question.prompt)
    # It does not wait for the program that it tells of its end.
    return ProgramCall((*argv, "-"), prompt, linger_s=5.0 if hook else 0.0)


def read(ended: EndedProgram) -> Report:
    events = ended.read_records()
    ends = [each for each in events if each.get("type") in {"turn.completed", "turn.failed"}]
    answer = _read_answer(events, ended.question)
    error = None
    if ends and ends[-1]["type"] == "turn.failed":
        error = find(ends[-1], str, "error", "message") or ""
        # It may be the endpoint's JSON.
        told = parse_last(error.encode(errors="replace"))
        error = find(told, str, "error", "message") or error
    return Report(answer, has_end=bool(ends), error=error)


def _build_schema(question: AdapterQuestion) -> StrictSchema | None:
    schema = playing.find_object_schema(question)
    return None if schema is None else derive_strict(schema)


def _read_answer(events: list[dict[str, Any]], question: AdapterQuestion) -> AdapterAnswer:
    trace = list(_read_trace(events))
    said = [find(each, str, "text") or "" for each in trace if each["type"] == "message"]
    text, meta = said[-1] if said else "", None
    strict = _build_schema(question)
    if strict is not None and question.schema is not None:
        value = restore(
            parse_last(text.encode(errors="replace")), build_wanted_object(question.schema).schema
        )
        read = read_answer(value if isinstance(value, dict) else None, question.schema)
        if read is not None:
            text, meta = read.content or text, read.meta
    warnings = [{"type": "warning", "message": _IN_WORDS}]
    is_in_words = (
        strict is None and question.schema is not None and "schema" not in question.settings
    )
    return AdapterAnswer(
        text=text,
        structured=meta,
        session=find(find_last(events, "thread.started"), str, "thread_id"),
        usage=read_usage(
            find(find_last(events, "turn.completed"), dict, "usage"),
            inputTokens="input_tokens",
            outputTokens="output_tokens",
            cachedInputTokens="cached_input_tokens",
            reasoningTokens="reasoning_output_tokens",
        ),
        trace=(*trace, *(warnings if is_in_words else [])),
    )


def _read_trace(events: list[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for event in events:
        if event.get("type") == "error":
            yield {"type": "warning", "message": find(event, str, "message")}
        item = find(event, dict, "item")
        if event.get("type") != "item.completed" or item is None:
            continue
        match find(item, str, "type"):
            case "agent_message":
                yield {"type": "message", "text": item.get("text")}
            case "error":
                yield {"type": "warning", "message": item.get("message")}
            case "reasoning" | "todo_list" | None:
                pass
            case kind:
                yield _read_tool(kind, item)


def _read_tool(kind: str, item: Mapping[str, Any]) -> dict[str, Any]:
    known = {"id", "type", "command", "aggregated_output", "status"}
    told = {key: value for key, value in item.items() if key not in known}
    is_good = item.get("status") == "completed"
    event = tool_event(kind, item.get("command"), item.get("aggregated_output"), ok=is_good)
    return {**event, "details": told} if told else event


ADAPTER = CommandAdapter(
    name="codex",
    build=build,
    read=read,
    tell=lambda record: _read_trace([record]),
    schema_way="its own --output-schema",
    takes_mcp=True,
    environ=("OPENAI_*", "CODEX_*", "AZURE_OPENAI_*"),
    install="npm install -g @openai/codex, then `codex login`",
    login="`codex login`",
    lost_session="no rollout found",
    final="turn",
    anew=(),
)

main = playing.adapter_main(ADAPTER, about=_ABOUT, keys=ADAPTER.keys)
