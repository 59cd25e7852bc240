"""Adapters that were written from documentation, and never run with their programs."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from uwf_git.agentkit import turn
from uwf_git.agentkit.ladder import add_guide, read_answer
from uwf_git.agentkit.programs import playing
from uwf_git.agentkit.programs.command import CommandAdapter, EndedProgram, ProgramCall, Report
from uwf_git.agentkit.records import (
    find,
    find_first,
    find_last,
    parse_last,
    read_left,
    read_usage,
    tool_event,
)
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, AskFailed

# uwf-cursor: the Cursor CLI plays a role.
#
# Only its record ``result`` is the verdict; a failure has none, and stderr says why. The result
# repeats all text from the beginning, so the answer is the text after the last tool, if the result
# ends with it.
# `uwf mcp` is not attached: cursor-agent reads MCP servers only from .cursor/mcp.json of the
# project or the user (`--approve-mcps` approves its entries), and a run may write into neither.
# Without `--force` it only proposes changes when there is no person to ask, so `force` is the
# default; its documentation does not say what `--sandbox` restricts together with `--force`.
# Source: cursor.com/docs/cli/reference/output-format, /parameters and /docs/cli/mcp. Never run with
# the program itself, which needs an account.

_CURSOR_ABOUT = """\
Play roles with the Cursor CLI (`cursor-agent -p`), in the thread's work directory. It needs a
login (`cursor-agent login`), or CURSOR_API_KEY. Written from its documentation, and not yet
tried against the program.

What it may do (--permission); nothing is asked, since no person is there to answer:
  force     everything that its configuration does not deny. The default, since
            otherwise it only proposes its changes.
  default   what its configuration allows
  plan      read only, and make a plan; ask: read only
It has a sandbox for commands: --args '--sandbox enabled'.

It takes MCP servers from mcp.json alone. To let it use the tools of `uwf mcp`, put `uwf mcp`
into ~/.cursor/mcp.json yourself, and say --args --approve-mcps.
"""

_CURSOR_PERMISSIONS: dict[str, tuple[str, ...]] = {
    "force": ("--force",),
    "default": (),
    "plan": ("--mode", "plan"),
    "ask": ("--mode", "ask"),
}


def build_cursor(question: AdapterQuestion, _folder: str) -> ProgramCall:
    settings = question.settings
    argv = ["cursor-agent", "-p", "--output-format", "stream-json", "--trust"]
    argv += _CURSOR_PERMISSIONS[turn.choose_permission(settings, _CURSOR_PERMISSIONS)]
    argv += playing.option("--model", settings.get("model"))
    argv += playing.option("--resume", question.session)
    return ProgramCall((*argv, *turn.split_args(settings)), question.prompt)


def read_cursor(ended: EndedProgram) -> Report:
    """Read its records; only some versions report the usage."""
    records = ended.read_records()
    result = find_last(records, "result")
    last = _find_cursor_answer(records)
    whole = find(result, str, "result")
    answer = AdapterAnswer(
        text=last if whole is None or whole.rstrip().endswith(last.strip() or "\0") else whole,
        session=find_first(records, "session_id"),
        usage=read_usage(
            find(result, dict, "usage"),
            inputTokens="inputTokens",
            outputTokens="outputTokens",
            cachedInputTokens="cacheReadTokens",
        ),
        trace=tuple(_read_cursor_trace(records)),
    )
    if result is None:
        return Report(answer, has_end=False)
    is_good = result.get("is_error") is False and result.get("subtype") == "success"
    return Report(answer, error=None if is_good else whole or "")


def _find_cursor_answer(records: list[dict[str, Any]]) -> str:
    said: list[str] = []
    for record in records:
        if record.get("type") == "tool_call":
            said.clear()
        elif record.get("type") == "assistant":
            said.append(_text(record))
    return "".join(said)


def _text(record: dict[str, Any]) -> str:
    blocks = find(record, list, "message", "content") or []
    return "".join(find(block, str, "text") or "" for block in blocks)


def _read_cursor_trace(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for record in records:
        if record.get("type") != "tool_call" or record.get("subtype") != "completed":
            continue
        call = find(record, dict, "tool_call") or {}
        for name, told in call.items():
            if name.endswith("ToolCall"):
                result = find(told, dict, "result") or {}
                yield tool_event(
                    name.removesuffix("ToolCall"),
                    find(told, dict, "args"),
                    result.get("success", result),
                    ok="success" in result,
                )


def _tell_cursor(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if record.get("type") == "assistant":
        yield {"type": "message", "text": _text(record)}
    yield from _read_cursor_trace([record])


CURSOR = CommandAdapter(
    name="cursor",
    # `agent` may be another vendor's program.
    programs=("cursor-agent", "agent"),
    build=build_cursor,
    read=read_cursor,
    tell=_tell_cursor,
    environ=("CURSOR_API_KEY", "CURSOR_CONFIG_DIR", "CURSOR_API_ENDPOINT"),
    install="curl https://cursor.com/install -fsS | bash",
    login="cursor-agent login, or CURSOR_API_KEY",
)

cursor_main = playing.adapter_main(CURSOR, about=_CURSOR_ABOUT)


# uwf-goose: goose plays a role.
#
# Only its event ``complete`` is the verdict, and only without an ``error`` before it: some versions
# report a failure as a message of the model and go on to ``complete``. The usage is that of the
# whole session. A session keeps the server of `uwf mcp` with which it began.
# It has no mode between answering only and everything: `approve` and `smart_approve` wait for a
# person, and nothing confines its files or commands to the work directory.
# Source: goose-docs.ai (running tasks, recipe reference), and goose-cli: the event types,
# ``parse_stdio_extension``, ``collect_extension_configs``. Never run with the program itself.

_GOOSE_ABOUT = """\
Play roles with goose (`goose run`), in the thread's work directory. Written from its
documentation, and not yet tried against the program.

What it may do (--permission); nothing is asked, since no person is there to answer:
  auto   everything that you may do. The default: it knows nothing in between.
  chat   nothing: it only answers
"""

_SESSION_FILE = "session"

_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
# Some versions ask whether tools that are not configured may be used again.
_NOT_RESUMED = b"Resume cancelled"


def build_goose(question: AdapterQuestion, folder: str) -> ProgramCall:
    """Build the call for *question*; the session's name and a recipe go into *folder*."""
    settings = question.settings
    session = question.session or f"uwf-{os.urandom(8).hex()}"
    playing.write_file(folder, _SESSION_FILE, session)
    argv = ["goose", "run", "--quiet", "--output-format", "stream-json", "--name", session]
    argv += playing.setting_options(question, ("provider", "model"))
    if question.session is None:
        argv += playing.option("--with-extension", playing.mcp_command_line(question))
    else:
        # It has the server of `uwf mcp` already.
        argv.append("--resume")
    given = ""
    schema = playing.find_object_schema(question)
    if schema is None or question.session is not None:
        argv += ["--instructions", "-"]
        given = question.prompt
    else:
        prompt = add_guide(question.prompt)
        # The prompt is in the recipe, not on stdin, from which it would be recorded.
        turn.extend_prompt(question.step_dir, question.prompt, prompt)
        recipe = playing.write_file(folder, "recipe.json", _build_recipe(schema, prompt))
        argv += ["--recipe", recipe]
    mode = settings.get("permission") or "auto"
    return ProgramCall((*argv, *turn.split_args(settings)), given, {"GOOSE_MODE": mode})


def read_goose(ended: EndedProgram) -> Report:
    """Read its events; ``complete`` is the verdict, and an ``error`` before it counts."""
    records, question = ended.read_records(), ended.question
    complete = find_last(records, "complete")
    session = read_left(ended.folder, _SESSION_FILE)
    answer = AdapterAnswer(
        text=_find_goose_answer(records),
        session=None if session is None else session.decode(errors="replace"),
        usage=read_usage(
            complete,
            inputTokens="input_tokens",
            outputTokens="output_tokens",
            cachedInputTokens="cache_read_input_tokens",
            costUsd="cost_usd",
        ),
        trace=tuple(_read_goose_trace(records)),
    )
    # The answer to a recipe ends with the object.
    value = parse_last(answer.text.encode()) if question.schema is not None else None
    found = read_answer(value, question.schema or True) if isinstance(value, dict) else None
    if found is not None and question.session is None:
        answer = replace(answer, text=found.content, structured=found.meta)
    error = find(find_last(records, "error"), str, "error")
    if error is None and answer.text.startswith("Ran into this error:"):
        error = answer.text
    report = Report(answer, complete is not None and not ended.run.exit_code, error)
    if not report.is_good and question.session is not None and _NOT_RESUMED in ended.run.stdout:
        message = f"goose refused to resume the session {question.session:.60}"
        raise AskFailed("no-session", message)
    return report


def _build_recipe(schema: dict[str, Any], prompt: str) -> str:
    """Return the recipe that asks for an object; goose expands braces, so they are escaped."""
    recipe = {
        "version": "1.0.0",
        "title": "uwf",
        "description": "One turn of a role.",
        "prompt": prompt,
        "response": {"json_schema": schema},
    }
    text = json.dumps(recipe, ensure_ascii=False)
    return _JSON_TEXT.sub(lambda found: found[0].replace("{", "\\u007b"), text)


def _contents(records: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the parts of all messages, each with its message."""
    for record in records:
        message = find(record, dict, "message")
        if record.get("type") == "message" and message is not None:
            for part in find(message, list, "content") or []:
                yield message, part


def _find_goose_answer(records: list[dict[str, Any]]) -> str:
    """Return the assistant's text after the last tool; a message comes in pieces."""
    said: dict[Any, str] = {}
    for message, part in _contents(records):
        if find(part, str, "type") in ("toolRequest", "toolResponse"):
            said.clear()
        elif message.get("role") == "assistant" and (text := find(part, str, "text")):
            name = message.get("id")
            said[name] = said.get(name, "") + text
    return "\n\n".join(said.values())


def _read_goose_trace(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    results = {
        find(part, str, "id"): find(part, dict, "toolResult") or {}
        for _, part in _contents(records)
        if find(part, str, "type") == "toolResponse"
    }
    for _, part in _contents(records):
        if find(part, str, "type") == "toolRequest":
            result = results.get(find(part, str, "id"), {})
            is_error = find(result, bool, "value", "isError") is True
            call = find(part, dict, "toolCall", "value")
            yield tool_event(
                find(call, str, "name"),
                find(call, dict, "arguments"),
                result.get("value", result.get("error")),
                ok=result.get("status") == "success" and not is_error,
            )


def _tell_goose(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for message, part in _contents([record]):
        if message.get("role") == "assistant":
            yield {"type": "piece", "text": find(part, str, "text")}
    yield from _read_goose_trace([record])


GOOSE = CommandAdapter(
    name="goose",
    build=build_goose,
    read=read_goose,
    tell=_tell_goose,
    schema_way="a recipe's response",
    takes_mcp=True,
    # Named one by one: it sets others for its children, which must not reach a nested goose.
    environ=(
        "GOOSE_PROVIDER", "GOOSE_MODEL", "GOOSE_PROVIDER__*", "GOOSE_DISABLE_KEYRING",
        "GOOSE_MAX_TURNS", "GOOSE_CONTEXT_LIMIT", "GOOSE_PATH_ROOT", *playing.PROVIDER_VARIABLES,
    ),
    install="see https://goose-docs.ai; the PyPI package goose-ai is something else",
    login="goose configure, or the key of its provider in the environment",
    lost_session="no session .{0,40}found|session .{0,80}not found",
    anew=(),
)  # fmt: skip

_GOOSE_KEYS = {"provider": "the provider of the model, as goose names it", **GOOSE.keys}

goose_main = playing.adapter_main(GOOSE, about=_GOOSE_ABOUT, keys=_GOOSE_KEYS)
