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
import sys
from collections.abc import Iterator
from typing import Any

from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.agentkit.extraction.records import (
    Record,
    build_usage,
    find,
    find_last,
    parse_last,
    parse_lines,
)
from uwf_git.agentkit.extraction.role_object import add_guide, read_answer
from uwf_git.agentkit.programs.command_adapter import (
    CommandAdapter,
    EndedProgram,
    ProgramCall,
    adapter_main,
)
from uwf_git.agentkit.programs.failures import (
    explain_no_record,
    explain_unknown_session,
    explain_words,
    require_words,
)
from uwf_git.agentkit.programs.mcp_config import find_mcp_entry, mcp_command_line
from uwf_git.agentkit.programs.options import (
    MCP_KEYS,
    find_object_schema,
    option,
    schema_keys,
    setting_options,
    write_file,
)
from uwf_git.agentkit.programs.provider_variables import PROVIDER_VARIABLES
from uwf_git.agentkit.settings import split_args
from uwf_git.agentkit.step_files import extend_prompt
from uwf_git.agents.files import read_left_file
from uwf_git.agents.nested import DEFAULT_MAX_OUTPUT_BYTES

_ABOUT = """\
Play roles with goose (`goose run`), in the thread's work directory. Written from its
documentation, and not yet tried against the program.

What it may do (--permission); nothing is asked, since no person is there to answer:
  auto   everything that you may do. The default: it knows nothing in between.
  chat   nothing: it only answers
"""

_LOGIN = "goose configure, or the key of its provider in the environment"

_KEYS = {
    "provider": "the provider of the model, as goose names it",
    **schema_keys("a recipe's response"),
    **MCP_KEYS,
}

_PERMISSION = "auto"

_SESSION_FILE = "session"
_RECIPE_FILE = "recipe.json"

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_FAILURE = "Ran into this error:"
_UNKNOWN_SESSION = re.compile(rb"no session .{0,40}found|session .{0,80}not found", re.IGNORECASE)
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
        entry = find_mcp_entry(question.environ, settings)
        argv += option("--with-extension", mcp_command_line(entry))
    else:
        # It has the server of `uwf mcp` already.
        argv.append("--resume")
    given = b""
    schema = find_object_schema(question)
    if schema is None or question.session is not None:
        argv += ["--instructions", "-"]
        given = question.prompt.encode(errors="replace")
    else:
        prompt = add_guide(question.prompt)
        # The prompt is in the recipe, not on stdin, from which it would be recorded.
        extend_prompt(question.step_dir, question.prompt, prompt)
        argv += ["--recipe", write_file(folder, _RECIPE_FILE, _build_recipe(schema, prompt))]
    mode = settings.get("permission") or _PERMISSION
    return ProgramCall((*argv, *split_args(settings)), given, {"GOOSE_MODE": mode})


def parse(ended: EndedProgram) -> AdapterAnswer:
    """Read the answer; raise AskFailed if the program reports a failure or no end."""
    records = parse_lines(ended.run.stdout)
    complete = find_last(records, "complete")
    answer = _read_answer(
        AdapterAnswer(
            text=_said_last(records),
            session=_read(ended.folder, _SESSION_FILE),
            usage=_read_usage(complete),
            trace=tuple(_trace(records)),
        ),
        ended.question,
    )
    failure = find(find_last(records, "error"), str, "error")
    if failure is None and answer.text.startswith(_FAILURE):
        failure = answer.text
    if failure is not None:
        raise explain_words("goose", failure, login=_LOGIN, partial=answer)
    if complete is None or ended.run.exit_code:
        raise _explain_end(ended, answer)
    require_words("goose", answer)
    return answer


def _build_recipe(schema: dict[str, Any], prompt: str) -> str:
    """Return the recipe that asks for the answer as an object.

    goose expands a recipe as a template before it parses the JSON, so braces are escaped.
    """
    recipe = {
        "version": "1.0.0",
        "title": "uwf",
        "description": "One turn of a role.",
        "prompt": prompt,
        "response": {"json_schema": schema},
    }
    text = json.dumps(recipe, ensure_ascii=False)
    return _TEXT.sub(lambda found: found[0].replace("{", "\\u007b"), text)


def _read(folder: str, name: str) -> str | None:
    try:
        path = os.path.join(folder, name)
        left = read_left_file(path, most_bytes=DEFAULT_MAX_OUTPUT_BYTES)
        return left.content.decode(errors="replace")
    except OSError:
        return None


def _read_answer(answer: AdapterAnswer, question: AdapterQuestion) -> AdapterAnswer:
    """Read the object with which the answer to a recipe ends."""
    value = parse_last(answer.text.encode()) if question.schema is not None else None
    read = read_answer(value, question.schema or True) if isinstance(value, dict) else None
    if read is None or question.session is not None:
        return answer
    return AdapterAnswer(
        text=read.content,
        structured=read.meta,
        session=answer.session,
        usage=answer.usage,
        trace=answer.trace,
    )


def _contents(records: list[dict[str, Any]]) -> Iterator[tuple[Record, Record]]:
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


def _read_usage(complete: Record | None) -> dict[str, Any]:
    return build_usage(
        inputTokens=find(complete, int, "input_tokens"),
        outputTokens=find(complete, int, "output_tokens"),
        cachedInputTokens=find(complete, int, "cache_read_input_tokens"),
        costUsd=find(complete, float, "cost_usd"),
    )


def _trace(records: list[dict[str, Any]]) -> Iterator[Record]:
    results = {
        find(part, str, "id"): find(part, dict, "toolResult") or {}
        for _, part in _contents(records)
        if find(part, str, "type") == "toolResponse"
    }
    for _, part in _contents(records):
        if find(part, str, "type") == "toolRequest":
            result = results.get(find(part, str, "id"), {})
            is_error = find(result, bool, "value", "isError") is True
            yield {
                "type": "tool",
                "name": find(part, str, "toolCall", "value", "name"),
                "input": find(part, dict, "toolCall", "value", "arguments"),
                "ok": result.get("status") == "success" and not is_error,
                "output": result.get("value", result.get("error")),
            }


def _explain_end(ended: EndedProgram, answer: AdapterAnswer) -> AskFailed:
    if ended.question.session is not None and _UNKNOWN_SESSION.search(ended.run.stderr):
        return explain_unknown_session("goose", ended)
    if ended.question.session is not None and _NOT_RESUMED in ended.run.stdout:
        message = f"goose refused to resume the session {ended.question.session:.60}"
        return AskFailed("no-session", message)
    return explain_no_record("goose", ended, login=_LOGIN, partial=answer)


# Named one by one: it sets others for its children, which must not reach a nested goose.
_ENVIRON = (
    "GOOSE_PROVIDER", "GOOSE_MODEL", "GOOSE_PROVIDER__*", "GOOSE_DISABLE_KEYRING",
    "GOOSE_MAX_TURNS", "GOOSE_CONTEXT_LIMIT", "GOOSE_PATH_ROOT", *PROVIDER_VARIABLES,
)  # fmt: skip

ADAPTER = CommandAdapter(
    name="goose",
    programs=("goose",),
    build=build,
    parse=parse,
    takes_schema=True,
    resumes=True,
    environ=_ENVIRON,
    install="see https://goose-docs.ai; the PyPI package goose-ai is something else",
    usage_is_cumulative=True,
)

main = adapter_main(ADAPTER, about=_ABOUT, keys=_KEYS)

if __name__ == "__main__":
    sys.exit(main())
