"""uwf-cursor: the Cursor CLI plays a role.

Owns: how `cursor-agent` is called without a terminal, and what its events mean.
Knows nothing of: running it.
Always true: only its record ``result`` is the verdict; when it fails there is none, and stderr
says why. The result repeats all that was said from the beginning, so the answer is what was said
after the last tool, if the result ends with it.
`uwf mcp` is not attached: cursor-agent takes MCP servers from .cursor/mcp.json alone, the
project's or the user's (`--approve-mcps` only approves what stands there), and a run may write into
neither. It has a sandbox for commands (`--sandbox`), of which no document says what holds with
`--force`, and without that it only proposes changes when nobody is there: so it may do everything.
Source: cursor.com/docs/cli/reference/output-format, /parameters and /docs/cli/mcp. Written from
these; the program itself, which needs an account, has not been run with it.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.agentkit.adapter import Answer, Asked
from uwf_git.agentkit.command_adapter import Command, CommandAdapter, Ended, adapter_main
from uwf_git.agentkit.failure_words import (
    explain_no_record,
    explain_words,
    require_good_end,
    require_words,
)
from uwf_git.agentkit.records import build_usage, find, parse_lines
from uwf_git.agentkit.settings import choose_permission, split_args

_ABOUT = """\
Play roles with the Cursor CLI (`cursor-agent -p`), in the thread's work directory. It needs a
login (`cursor-agent login`), or CURSOR_API_KEY. Written from its documentation, and not yet
tried against the program.

What it may do without asking, since nobody is there to be asked (--permission):
  force     everything that its configuration does not deny. The default, since
            otherwise it only proposes its changes.
  default   what its configuration allows
  plan      read only, and make a plan; ask: read only
It has a sandbox for commands: --args '--sandbox enabled'.

It takes MCP servers from mcp.json alone. To let it use the tools of `uwf mcp`, put `uwf mcp`
into ~/.cursor/mcp.json yourself, and say --args --approve-mcps.
"""

_LOGIN = "cursor-agent login, or CURSOR_API_KEY"

_PERMISSIONS: dict[str, tuple[str, ...]] = {
    "force": ("--force",),
    "default": (),
    "plan": ("--mode", "plan"),
    "ask": ("--mode", "ask"),
}

_TOOL_SUFFIX = "ToolCall"

Record = Mapping[str, Any]


def build(asked: Asked, _folder: str) -> Command:
    """Build the call that asks *asked*.

    Raises:
        BadUsage: a setting is wrong.
    """
    settings = asked.settings
    argv = ["cursor-agent", "-p", "--output-format", "stream-json", "--trust"]
    argv += _PERMISSIONS[choose_permission(settings, _PERMISSIONS)]
    if settings.get("model"):
        argv += ["--model", settings["model"]]
    if asked.session is not None:
        argv += ["--resume", asked.session]
    return Command((*argv, *split_args(settings)), asked.prompt.encode(errors="replace"))


def parse(ended: Ended) -> Answer:
    """Read what it printed.

    Raises:
        NoAnswer: it says that it failed, or does not say that it has finished.
    """
    records = parse_lines(ended.run.stdout)
    results = [record for record in records if record.get("type") == "result"]
    sessions = [name for record in records if (name := find(record, str, "session_id"))]
    last = _said_last(records)
    whole = find(results[-1], str, "result") if results else None
    answer = Answer(
        text=last if whole is None or whole.rstrip().endswith(last.strip() or "\0") else whole,
        session=sessions[-1] if sessions else None,
        usage=_read_usage(results[-1]) if results else {},
        trace=tuple(_trace(records)),
    )
    if not results:
        raise explain_no_record("cursor", ended, login=_LOGIN, partial=answer)
    result = results[-1]
    if result.get("is_error") is not False or result.get("subtype") != "success":
        raise explain_words("cursor", whole or "", login=_LOGIN, partial=answer)
    require_good_end("cursor", ended, answer, after="result")
    require_words("cursor", answer)
    return answer


def _said_last(records: list[dict[str, Any]]) -> str:
    """Give what was said after the last tool."""
    said: list[str] = []
    for record in records:
        if record.get("type") == "tool_call":
            said.clear()
        elif record.get("type") == "assistant":
            said.append(_text(record))
    return "".join(said)


def _text(record: Record) -> str:
    blocks = find(record, list, "message", "content") or []
    return "".join(find(block, str, "text") or "" for block in blocks)


def _read_usage(result: Record) -> dict[str, Any]:
    """Read the numbers that some versions tell."""
    return build_usage(
        inputTokens=find(result, int, "usage", "inputTokens"),
        outputTokens=find(result, int, "usage", "outputTokens"),
        cachedInputTokens=find(result, int, "usage", "cacheReadTokens"),
    )


def _trace(records: list[dict[str, Any]]) -> Iterator[Record]:
    for record in records:
        if record.get("type") != "tool_call" or record.get("subtype") != "completed":
            continue
        call = find(record, dict, "tool_call") or {}
        for name, told in call.items():
            if name.endswith(_TOOL_SUFFIX):
                result = find(told, dict, "result") or {}
                yield {
                    "type": "tool",
                    "name": name.removesuffix(_TOOL_SUFFIX),
                    "input": find(told, dict, "args"),
                    "ok": "success" in result,
                    "output": result.get("success", result),
                }


ADAPTER = CommandAdapter(
    name="cursor",
    # Others have programs that are called agent as well.
    programs=("cursor-agent", "agent"),
    build=build,
    parse=parse,
    resumes=True,
    environ=("CURSOR_API_KEY", "CURSOR_CONFIG_DIR", "CURSOR_API_ENDPOINT"),
    install="curl https://cursor.com/install -fsS | bash",
)

main = adapter_main(ADAPTER, about=_ABOUT)

if __name__ == "__main__":
    sys.exit(main())
