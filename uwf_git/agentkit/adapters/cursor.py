"""uwf-cursor: the Cursor CLI plays a role.

Only its record ``result`` is the verdict; a failure has none, and stderr says why. The result
repeats all text from the beginning, so the answer is the text after the last tool, if the result
ends with it.
`uwf mcp` is not attached: cursor-agent reads MCP servers only from .cursor/mcp.json of the project
or the user (`--approve-mcps` approves its entries), and a run may write into neither. Without
`--force` it only proposes changes when there is no person to ask, so `force` is the default; its
documentation does not say what `--sandbox` restricts together with `--force`.
Source: cursor.com/docs/cli/reference/output-format, /parameters and /docs/cli/mcp. Never run with
the program itself, which needs an account.
"""

from collections.abc import Iterator
from typing import Any

from uwf_git.agentkit.programs.command import CommandAdapter, EndedProgram, ProgramCall, Report
from uwf_git.agentkit.programs.playing import adapter_main, option
from uwf_git.agentkit.records import find, find_first, find_last, read_usage, tool_event
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, choose_permission, split_args

_ABOUT = """\
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

_PERMISSIONS: dict[str, tuple[str, ...]] = {
    "force": ("--force",),
    "default": (),
    "plan": ("--mode", "plan"),
    "ask": ("--mode", "ask"),
}


def build(question: AdapterQuestion, _folder: str) -> ProgramCall:
    settings = question.settings
    argv = ["cursor-agent", "-p", "--output-format", "stream-json", "--trust"]
    argv += _PERMISSIONS[choose_permission(settings, _PERMISSIONS)]
    argv += option("--model", settings.get("model"))
    argv += option("--resume", question.session)
    return ProgramCall((*argv, *split_args(settings)), question.prompt)


def read(ended: EndedProgram) -> Report:
    """Read its records; only some versions report the usage."""
    records = ended.read_records()
    result = find_last(records, "result")
    last = _said_last(records)
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
        trace=tuple(_trace(records)),
    )
    if result is None:
        return Report(answer, has_end=False)
    is_good = result.get("is_error") is False and result.get("subtype") == "success"
    return Report(answer, error=None if is_good else whole or "")


def _said_last(records: list[dict[str, Any]]) -> str:
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


def _trace(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
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


def _tell(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if record.get("type") == "assistant":
        yield {"type": "message", "text": _text(record)}
    yield from _trace([record])


ADAPTER = CommandAdapter(
    name="cursor",
    # `agent` may be another vendor's program.
    programs=("cursor-agent", "agent"),
    build=build,
    read=read,
    tell=_tell,
    environ=("CURSOR_API_KEY", "CURSOR_CONFIG_DIR", "CURSOR_API_ENDPOINT"),
    install="curl https://cursor.com/install -fsS | bash",
    login="cursor-agent login, or CURSOR_API_KEY",
)

main = adapter_main(ADAPTER, about=_ABOUT)
