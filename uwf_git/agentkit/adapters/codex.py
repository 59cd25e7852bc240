"""uwf-codex: OpenAI's Codex plays a role.

Owns: how `codex exec` is called, and what its events mean.
Knows nothing of: running it.
Always true: only the event `turn.completed` is the verdict, and only if no `turn.failed` came after
it. An item or an event of type `error` is a warning. An object that was asked for is sent to the
provider unchecked, and comes back unchecked.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.agentkit.adapter import Answer, Asked, NoAnswer
from uwf_git.agentkit.command_adapter import Command, CommandAdapter, Ended, adapter_main
from uwf_git.agentkit.failure_words import (
    explain_no_record,
    explain_words,
    require_good_end,
    require_words,
)
from uwf_git.agentkit.mcp_config import find_mcp_entry, mcp_toml
from uwf_git.agentkit.records import build_usage, find, parse_last, parse_lines
from uwf_git.agentkit.role_object import GUIDE, read_answer, wanted_of
from uwf_git.agentkit.settings import split_args
from uwf_git.agentkit.strict_schema import StrictSchema, derive_strict, restore

_ABOUT = """\
Play roles with OpenAI's Codex (`codex exec`), in the thread's work directory.

What it may do (--permission), which is its sandbox; it asks nobody:
  read-only           read files and run commands that change nothing
  workspace-write     change files in the work directory and the temporary one, run
                      commands, and reach no network. The default.
  danger-full-access  everything that you may do
"""

_KEYS = {
    "schema": "words: ask for the fields in words, not by its own --output-schema",
    "mcp": "off: do not offer it the tools of `uwf mcp`",
}

_PERMISSION = "workspace-write"
_SCHEMA_FILE = "schema.json"
_LOGIN = "`codex login`"
_NO_SESSION = "no rollout found"

_IN_WORDS = "the role's schema cannot be said as codex takes it; its fields were asked for in words"


def build(asked: Asked, folder: str) -> Command:
    """Build the call that asks *asked*; the schema is left in *folder*.

    Raises:
        BadUsage: a setting is wrong.
    """
    settings = asked.settings
    argv = ["codex", "exec", "--json", "--skip-git-repo-check"]
    argv += ["--sandbox", settings.get("permission") or _PERMISSION]
    if settings.get("model"):
        argv += ["--model", settings["model"]]
    strict = _build_schema(asked)
    if strict is not None:
        path = os.path.join(os.path.abspath(folder), _SCHEMA_FILE)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(strict.schema, file)
        argv += ["--output-schema", path]
    if find_mcp_entry(asked.environ, settings) is not None:
        argv += ["-c", mcp_toml(asked.environ)]
    argv += split_args(settings)
    if asked.session is not None:
        argv += ["resume", asked.session]
    prompt = asked.prompt if strict is None else f"{asked.prompt}\n{GUIDE}\n"
    return Command((*argv, "-"), prompt.encode(errors="replace"))


def parse(ended: Ended) -> Answer:
    """Read what it printed.

    Raises:
        NoAnswer: it says that it failed, or does not say that it has finished.
    """
    events = parse_lines(ended.run.stdout)
    ends = [each for each in events if each.get("type") in {"turn.completed", "turn.failed"}]
    answer = _read_answer(events, ended.asked)
    if not ends:
        raise _explain_none(ended, answer)
    if ends[-1]["type"] == "turn.failed":
        raise explain_words("codex", _read_error(ends[-1]), login=_LOGIN, partial=answer)
    require_good_end("codex", ended, answer, after="turn")
    require_words("codex", answer)
    return answer


def _build_schema(asked: Asked) -> StrictSchema | None:
    """Give the schema of the fields and the words together; None to ask for them in words."""
    if asked.schema is None or asked.settings.get("schema") == "words":
        return None
    return derive_strict(wanted_of(asked.schema).schema)


def _read_answer(events: list[dict[str, Any]], asked: Asked) -> Answer:
    said = [find(item, str, "text") or "" for item in _items(events, "agent_message")]
    text, meta = said[-1] if said else "", None
    strict = _build_schema(asked)
    if strict is not None and asked.schema is not None:
        value = restore(parse_last(text.encode(errors="replace")), wanted_of(asked.schema).schema)
        read = read_answer(value if isinstance(value, dict) else None, asked.schema)
        if read is not None:
            text, meta = read.content or text, read.meta
    ends = [each for each in events if each.get("type") == "turn.completed"]
    started = [each for each in events if each.get("type") == "thread.started"]
    warnings = [{"type": "warning", "message": _IN_WORDS}]
    is_in_words = strict is None and asked.schema is not None and "schema" not in asked.settings
    return Answer(
        text=text,
        structured=meta,
        session=find(started[-1], str, "thread_id") if started else None,
        usage=_read_usage(ends[-1]) if ends else {},
        trace=(*_read_trace(events), *(warnings if is_in_words else [])),
    )


def _read_usage(end: Mapping[str, Any]) -> dict[str, Any]:
    usage = find(end, dict, "usage")
    return build_usage(
        inputTokens=find(usage, int, "input_tokens"),
        outputTokens=find(usage, int, "output_tokens"),
        cachedInputTokens=find(usage, int, "cached_input_tokens"),
        reasoningTokens=find(usage, int, "reasoning_output_tokens"),
    )


def _items(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """List the finished items of one kind."""
    items = [find(each, dict, "item") for each in events if each.get("type") == "item.completed"]
    return [item for item in items if item is not None and item.get("type") == kind]


def _read_trace(events: list[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Tell what it did: what it said, its tools with what they gave, and its warnings."""
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
    return {
        "type": "tool",
        "name": kind,
        "input": item.get("command"),
        "output": item.get("aggregated_output"),
        "ok": item.get("status") == "completed",
        **({"details": told} if told else {}),
    }


def _read_error(event: Mapping[str, Any]) -> str:
    """Give the message of a failed turn, which may be the endpoint's JSON as a text."""
    words = find(event, str, "error", "message") or ""
    told = parse_last(words.encode(errors="replace"))
    return find(told, str, "error", "message") or words


def _explain_none(ended: Ended, answer: Answer) -> NoAnswer:
    failure = explain_no_record("codex", ended, login=_LOGIN, partial=answer)
    if _NO_SESSION in failure.message:
        return NoAnswer("no-session", failure.message)
    return failure


ADAPTER = CommandAdapter(
    name="codex",
    programs=("codex",),
    build=build,
    parse=parse,
    takes_schema=True,
    resumes=True,
    environ=("OPENAI_*", "CODEX_*", "AZURE_OPENAI_*"),
    install="npm install -g @openai/codex, then `codex login`",
    usage_is_cumulative=True,
)

main = adapter_main(ADAPTER, about=_ABOUT, keys=_KEYS)

if __name__ == "__main__":
    sys.exit(main())
