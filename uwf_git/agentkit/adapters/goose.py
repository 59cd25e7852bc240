"""uwf-goose: goose plays a role.

Owns: how `goose run` is called, its recipes, and what its events mean.
Knows nothing of: running it.
Always true: only its event ``complete`` is the verdict, and only without an ``error`` before it:
some versions go on to it after a failure, which they tell as if the model had said it. Its tokens
count on over a resumed session. A session keeps the tools of `uwf mcp` with which it was begun.
It has no mode between answering only and everything: `approve` and `smart_approve` wait for a
person, and nothing holds its files or its commands to the work directory.
Source: goose-docs.ai (running tasks, recipe reference), and goose-cli: the event types,
``parse_stdio_extension``, ``collect_extension_configs``. Written from these; the program itself has
not been run with it.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.agentkit.adapter import Answer, Asked, NoAnswer
from uwf_git.agentkit.command_adapter import Command, CommandAdapter, Ended, adapter_main
from uwf_git.agentkit.failure_words import (
    explain_no_record,
    explain_unknown_session,
    explain_words,
    require_words,
)
from uwf_git.agentkit.mcp_config import find_mcp_entry, mcp_command_line
from uwf_git.agentkit.provider_variables import PROVIDER_VARIABLES
from uwf_git.agentkit.records import build_usage, find, parse_last, parse_lines
from uwf_git.agentkit.role_object import GUIDE, read_answer, wanted_of
from uwf_git.agentkit.settings import split_args
from uwf_git.agentkit.step_files import extend_prompt

_ABOUT = """\
Play roles with goose (`goose run`), in the thread's work directory. Written from its
documentation, and not yet tried against the program.

What it may do without asking, since nobody is there to be asked (--permission):
  auto   everything that you may do. The default: it knows nothing in between.
  chat   nothing: it only answers
"""

_LOGIN = "goose configure, or the key of its provider in the environment"

_KEYS = {
    "provider": "the provider of the model, as goose names it",
    "schema": "words: ask for the fields in words, not by a recipe's response",
    "mcp": "off: do not offer it the tools of `uwf mcp`",
}

_PERMISSION = "auto"

_SESSION_FILE = "session"
_RECIPE_FILE = "recipe.json"

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_FAILURE = "Ran into this error:"
_UNKNOWN_SESSION = re.compile(rb"no session .{0,40}found|session .{0,80}not found", re.IGNORECASE)
# Some versions ask whether tools that are in no configuration may be used again.
_NOT_RESUMED = b"Resume cancelled"

Record = Mapping[str, Any]


def build(asked: Asked, folder: str) -> Command:
    """Build the call that asks *asked*; what names the session, and a recipe, go into *folder*.

    Raises:
        BadUsage: a setting is wrong.
    """
    settings = asked.settings
    session = asked.session or f"uwf-{os.urandom(8).hex()}"
    _write(folder, _SESSION_FILE, session)
    argv = ["goose", "run", "--quiet", "--output-format", "stream-json", "--name", session]
    for key in ("provider", "model"):
        if settings.get(key):
            argv += [f"--{key}", settings[key]]
    if asked.session is not None:
        argv.append("--resume")
    elif find_mcp_entry(asked.environ, settings) is not None:
        # A session that goes on has it already; it would be offered twice.
        argv += ["--with-extension", mcp_command_line(asked.environ)]
    given = b""
    if asked.schema is None or asked.session is not None or settings.get("schema") == "words":
        argv += ["--instructions", "-"]
        given = asked.prompt.encode(errors="replace")
    else:
        prompt = f"{asked.prompt}\n{GUIDE}\n"
        # It is not told this by stdin, where it would be found.
        extend_prompt(asked.step_dir, asked.prompt, prompt)
        argv += ["--recipe", _write(folder, _RECIPE_FILE, _build_recipe(asked, prompt))]
    mode = settings.get("permission") or _PERMISSION
    return Command((*argv, *split_args(settings)), given, {"GOOSE_MODE": mode})


def parse(ended: Ended) -> Answer:
    """Read what it printed.

    Raises:
        NoAnswer: it says that it failed, or does not say that it has finished.
    """
    records = parse_lines(ended.run.stdout)
    completes = [record for record in records if record.get("type") == "complete"]
    answer = _read_answer(
        Answer(
            text=_said_last(records),
            session=_read(ended.folder, _SESSION_FILE),
            usage=_read_usage(completes[-1]) if completes else {},
            trace=tuple(_trace(records)),
        ),
        ended.asked,
    )
    errors = [record for record in records if record.get("type") == "error"]
    failure = find(errors[-1], str, "error") if errors else None
    if failure is None and answer.text.startswith(_FAILURE):
        failure = answer.text
    if failure is not None:
        raise explain_words("goose", failure, login=_LOGIN, partial=answer)
    if not completes or ended.run.exit_code:
        raise _explain_end(ended, answer)
    require_words("goose", answer)
    return answer


def _build_recipe(asked: Asked, prompt: str) -> str:
    """Write the recipe that asks for the answer as an object.

    Recipes are templates before they are JSON: no brace of the prompt may stand in it as such.
    """
    recipe = {
        "version": "1.0.0",
        "title": "uwf",
        "description": "One turn of a role.",
        "prompt": prompt,
        "response": {"json_schema": wanted_of(asked.schema or True).schema},
    }
    text = json.dumps(recipe, ensure_ascii=False)
    return _TEXT.sub(lambda found: found[0].replace("{", "\\u007b"), text)


def _write(folder: str, name: str, text: str) -> str:
    path = os.path.abspath(os.path.join(folder, name))
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    return path


def _read(folder: str, name: str) -> str | None:
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None


def _read_answer(answer: Answer, asked: Asked) -> Answer:
    """Take the object apart that a recipe's answer ends with."""
    value = parse_last(answer.text.encode()) if asked.schema is not None else None
    read = read_answer(value, asked.schema or True) if isinstance(value, dict) else None
    if read is None or asked.session is not None:
        return answer
    return Answer(
        text=read.content,
        structured=read.meta,
        session=answer.session,
        usage=answer.usage,
        trace=answer.trace,
    )


def _contents(records: list[dict[str, Any]]) -> Iterator[tuple[Record, Record]]:
    """Give the parts of all messages, each with its message."""
    for record in records:
        message = find(record, dict, "message")
        if record.get("type") == "message" and message is not None:
            for part in find(message, list, "content") or []:
                yield message, part


def _said_last(records: list[dict[str, Any]]) -> str:
    """Give what the assistant said after the last tool; a message comes in pieces."""
    said: dict[Any, str] = {}
    for message, part in _contents(records):
        if find(part, str, "type") in ("toolRequest", "toolResponse"):
            said.clear()
        elif message.get("role") == "assistant" and (text := find(part, str, "text")):
            name = message.get("id")
            said[name] = said.get(name, "") + text
    return "\n\n".join(said.values())


def _read_usage(complete: Record) -> dict[str, Any]:
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


def _explain_end(ended: Ended, answer: Answer) -> NoAnswer:
    if ended.asked.session is not None and _UNKNOWN_SESSION.search(ended.run.stderr):
        return explain_unknown_session("goose", ended)
    if ended.asked.session is not None and _NOT_RESUMED in ended.run.stdout:
        message = f"goose would not go on with the session {ended.asked.session:.60}"
        return NoAnswer("no-session", message)
    return explain_no_record("goose", ended, login=_LOGIN, partial=answer)


# One by one: it sets others for what it starts, which must not reach another one.
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
