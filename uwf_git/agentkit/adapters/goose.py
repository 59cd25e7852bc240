"""uwf-goose: goose plays a role.

Only its event ``complete`` is the verdict, and only without an ``error`` before it: some versions
report a failure as a message of the model and go on to ``complete``. The usage is that of the whole
session. A session keeps the server of `uwf mcp` with which it began.
It has no mode between answering only and everything: `approve` and `smart_approve` wait for a
person, and nothing confines its files or commands to the work directory.
Source: goose-docs.ai (running tasks, recipe reference), and goose-cli: the event types,
``parse_stdio_extension``, ``collect_extension_configs``. Never run with the program itself.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from uwf_git.agentkit.ladder import add_guide, read_answer
from uwf_git.agentkit.programs.command import CommandAdapter, EndedProgram, ProgramCall, Report
from uwf_git.agentkit.programs.playing import (
    PROVIDER_VARIABLES,
    adapter_main,
    find_object_schema,
    mcp_command_line,
    option,
    setting_options,
    write_file,
)
from uwf_git.agentkit.records import find, find_last, parse_last, read_left, read_usage, tool_event
from uwf_git.agentkit.turn import (
    AdapterAnswer,
    AdapterQuestion,
    AskFailed,
    extend_prompt,
    split_args,
)

_ABOUT = """\
Play roles with goose (`goose run`), in the thread's work directory. Written from its
documentation, and not yet tried against the program.

What it may do (--permission); nothing is asked, since no person is there to answer:
  auto   everything that you may do. The default: it knows nothing in between.
  chat   nothing: it only answers
"""

_SESSION_FILE = "session"
_RECIPE_FILE = "recipe.json"

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_FAILURE = "Ran into this error:"
# Some versions ask whether tools that are not configured may be used again.
_NOT_RESUMED = b"Resume cancelled"


def build(question: AdapterQuestion, folder: str) -> ProgramCall:
    """Build the call for *question*; the session's name and a recipe go into *folder*."""
    settings = question.settings
    session = question.session or f"uwf-{os.urandom(8).hex()}"
    write_file(folder, _SESSION_FILE, session)
    argv = ["goose", "run", "--quiet", "--output-format", "stream-json", "--name", session]
    argv += setting_options(question, ("provider", "model"))
    if question.session is None:
        argv += option("--with-extension", mcp_command_line(question))
    else:
        # It has the server of `uwf mcp` already.
        argv.append("--resume")
    given = ""
    schema = find_object_schema(question)
    if schema is None or question.session is not None:
        argv += ["--instructions", "-"]
        given = question.prompt
    else:
        prompt = add_guide(question.prompt)
        # The prompt is in the recipe, not on stdin, from which it would be recorded.
        extend_prompt(question.step_dir, question.prompt, prompt)
        argv += ["--recipe", write_file(folder, _RECIPE_FILE, _build_recipe(schema, prompt))]
    mode = settings.get("permission") or "auto"
    return ProgramCall((*argv, *split_args(settings)), given, {"GOOSE_MODE": mode})


def read(ended: EndedProgram) -> Report:
    """Read its events; ``complete`` is the verdict, and an ``error`` before it counts."""
    records, question = ended.read_records(), ended.question
    complete = find_last(records, "complete")
    session = read_left(ended.folder, _SESSION_FILE)
    answer = AdapterAnswer(
        text=_said_last(records),
        session=None if session is None else session.decode(errors="replace"),
        usage=read_usage(
            complete,
            inputTokens="input_tokens",
            outputTokens="output_tokens",
            cachedInputTokens="cache_read_input_tokens",
            costUsd="cost_usd",
        ),
        trace=tuple(_trace(records)),
    )
    # The answer to a recipe ends with the object.
    value = parse_last(answer.text.encode()) if question.schema is not None else None
    found = read_answer(value, question.schema or True) if isinstance(value, dict) else None
    if found is not None and question.session is None:
        answer = replace(answer, text=found.content, structured=found.meta)
    error = find(find_last(records, "error"), str, "error")
    if error is None and answer.text.startswith(_FAILURE):
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
    return _TEXT.sub(lambda found: found[0].replace("{", "\\u007b"), text)


def _contents(records: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the parts of all messages, each with its message."""
    for record in records:
        message = find(record, dict, "message")
        if record.get("type") == "message" and message is not None:
            for part in find(message, list, "content") or []:
                yield message, part


def _said_last(records: list[dict[str, Any]]) -> str:
    """Return the assistant's text after the last tool; a message comes in pieces."""
    said: dict[Any, str] = {}
    for message, part in _contents(records):
        if find(part, str, "type") in ("toolRequest", "toolResponse"):
            said.clear()
        elif message.get("role") == "assistant" and (text := find(part, str, "text")):
            name = message.get("id")
            said[name] = said.get(name, "") + text
    return "\n\n".join(said.values())


def _trace(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
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


def _tell(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for message, part in _contents([record]):
        if message.get("role") == "assistant":
            yield {"type": "piece", "text": find(part, str, "text")}
    yield from _trace([record])


# Named one by one: it sets others for its children, which must not reach a nested goose.
_ENVIRON = (
    "GOOSE_PROVIDER", "GOOSE_MODEL", "GOOSE_PROVIDER__*", "GOOSE_DISABLE_KEYRING",
    "GOOSE_MAX_TURNS", "GOOSE_CONTEXT_LIMIT", "GOOSE_PATH_ROOT", *PROVIDER_VARIABLES,
)  # fmt: skip

ADAPTER = CommandAdapter(
    name="goose",
    build=build,
    read=read,
    tell=_tell,
    schema_way="a recipe's response",
    takes_mcp=True,
    environ=_ENVIRON,
    install="see https://goose-docs.ai; the PyPI package goose-ai is something else",
    login="goose configure, or the key of its provider in the environment",
    lost_session="no session .{0,40}found|session .{0,80}not found",
    anew=(),
)

_KEYS = {"provider": "the provider of the model, as goose names it", **ADAPTER.keys}

main = adapter_main(ADAPTER, about=_ABOUT, keys=_KEYS)
