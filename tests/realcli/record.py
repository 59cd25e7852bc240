"""Record what the real programs print, for the tests of their adapters.

    python tests/realcli/record.py claude codex gemini opencode copilot qwen hermes aider

Run it after each change of a pinned version (install.sh), and read its diff. It needs no network.
"""

import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from realcli.recording import Situation, find_session, render, run
from realcli.vendors import AIDER, CLAUDE, CODEX, COPILOT, GEMINI, HERMES, OPENCODE, QWEN, Vendor

RECORDED = Path(__file__).parent.parent / "agentkit" / "adapters" / "recorded"

SCHEMA = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "summary": {"type": "string"}},
    "required": ["approved"],
}
CLOSED = SCHEMA | {"additionalProperties": False}
FRONT = "---\napproved: true\n---\nIt is **fine**.\n"
WHOLE = {"meta": {"approved": True}, "content": "It is **fine**."}
NULLS = WHOLE | {"meta": {"approved": True, "summary": None}}
NOBODY = "00000000-0000-4000-8000-000000000000"

TOOL = {"run": "echo hi"}
TOUCH = {"run": "touch made"}
TEXT = {"text": FRONT}
SILENCE = {"text": ""}
HANGS = {"text": "", "hang": True}


def situations(vendor: Vendor) -> Iterator[Situation]:
    """Return the situations of every program, and those of this one."""
    everything = vendor.can_do_all
    text = [TEXT] if vendor is AIDER else [TOOL, TEXT]
    yield Situation("text", text, permission=everything)
    if vendor.adapter.resumes:
        yield Situation("resumed", text, permission=everything, session="last")
        nobody = f"ses_{NOBODY}" if vendor is OPENCODE else NOBODY
        yield Situation("unknown-session", text, session=nobody)
    yield Situation("nothing-said", [SILENCE])
    for status in (400, 401):
        yield _error(status)
    yield Situation("bad-usage", text, args="--nonsense")
    yield Situation("terminated", [HANGS], signal=signal.SIGTERM)
    yield Situation("killed", [HANGS], signal=signal.SIGKILL)
    yield from SPECIAL[vendor.name]()


def _error(status: int) -> Situation:
    return Situation(f"error-{status}", [{"status": status, "message": "scripted error"}])


def _of_the_first() -> Iterator[Situation]:
    """Return the situations that claude, codex and gemini share."""
    yield Situation("odd-session", [TOOL, TEXT], session="nonsense")
    for status in (429, 500):
        yield _error(status)
    yield Situation("interrupted", [HANGS], signal=signal.SIGINT)


def _of_claude() -> Iterator[Situation]:
    yield from _of_the_first()
    run = {"run": 'python3 -c \'open("made", "w")\''}
    wrong = {"approved": "perhaps"}
    yield Situation("schema", [TOOL, {"json": WHOLE}], CLOSED)
    yield Situation("schema-ignored", [TEXT | {"plain": True}], CLOSED)
    yield Situation("schema-never-fits", [{"json": wrong}], CLOSED)
    yield Situation("schema-not-json", [TEXT], args="--json-schema '{'")
    yield Situation("refused", [run, TEXT])
    yield Situation("refused-and-nothing-said", [run, SILENCE])
    yield Situation("max-turns", [TOOL, TEXT], args="--max-turns 1")
    yield Situation("as-root", [TEXT], permission="bypassPermissions",
                    without=("IS_SANDBOX",))  # fmt: skip
    yield Situation("no-login", [TEXT], without=("ANTHROPIC_API_KEY",))
    headers = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": "1795000000",
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
    }
    limit = {"status": 429, "message": "This request would exceed your account's rate limit."}
    yield Situation("usage-limit", [limit | {"headers": headers}], without=("ANTHROPIC_API_KEY",),
                    environ={"CLAUDE_CODE_OAUTH_TOKEN": "t-0123456789"})  # fmt: skip


def _of_codex() -> Iterator[Situation]:
    yield from _of_the_first()
    yield Situation("schema", [{"json": NULLS}], CLOSED)
    yield Situation("schema-ignored", [TEXT | {"plain": True}], CLOSED)
    yield Situation("refused", [TOUCH, TEXT], permission="read-only")
    limit = {
        "type": "usage_limit_reached", "message": "The usage limit has been reached",
        "plan_type": "plus", "resets_at": 1795000000, "resets_in_seconds": 3600,
    }  # fmt: skip
    yield Situation("usage-limit", [{"status": 429, "body": {"error": limit}}])


def _of_gemini() -> Iterator[Situation]:
    yield from _of_the_first()
    auth = '"security":{"auth":{"selectedType":"gemini-api-key"}}'
    yield Situation("refused", [TOUCH, TEXT])
    yield Situation("max-turns", [TOOL, TEXT], permission="yolo",
                    settings=f'{{{auth},"model":{{"maxSessionTurns":1}}}}')  # fmt: skip
    yield Situation("no-login", [TEXT], without=("GEMINI_API_KEY",), settings="{}")
    retry = {
        "code": 429, "status": "RESOURCE_EXHAUSTED",
        "message": "You exceeded your current quota. Please retry in 7200s.",
        "details": [
            {
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}],
            },
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7200s"},
        ],
    }  # fmt: skip
    yield Situation("usage-limit", [{"status": 429, "body": {"error": retry}}])


def _of_opencode() -> Iterator[Situation]:
    rules = {"OPENCODE_PERMISSION": '{"bash":"ask"}'}
    yield Situation("refused", [TOUCH, TEXT], permission="ask", environ=rules)


def _of_copilot() -> Iterator[Situation]:
    yield Situation("refused", [TOUCH, TEXT], permission="none")
    yield Situation("refused-and-silent", [TOUCH, SILENCE], permission="none")
    yield _error(500)


def _of_qwen() -> Iterator[Situation]:
    yield Situation("schema", [TOOL, {"json": WHOLE}], SCHEMA)
    yield Situation("schema-resumed", [{"json": WHOLE}], SCHEMA, session="last")
    yield Situation("schema-ignored", [TEXT | {"plain": True}], SCHEMA)
    yield Situation("schema-never-fits", [{"json": {"meta": 1}}], SCHEMA)
    yield Situation("budget", [TOOL], args="--max-tool-calls 1")
    yield Situation("refused", [TOUCH, TEXT], permission="default")


def _of_hermes() -> Iterator[Situation]:
    yield Situation("before-error", [TEXT])
    yield Situation("resumed-error", [{"status": 401, "message": "scripted"}], session="last")
    yield _error(500)


def _of_aider() -> Iterator[Situation]:
    lies = "Done.\n\nTokens: 9k sent, 9k received.\n"
    yield Situation("lies-about-tokens", [{"text": lies}])
    yield Situation("edit", [{"text": "Here:\n\na.py\n```\nx = 2\n```\n\nDone.\n"}])


SPECIAL: dict[str, Callable[[], Iterator[Situation]]] = {
    "claude": _of_claude,
    "codex": _of_codex,
    "gemini": _of_gemini,
    "opencode": _of_opencode,
    "copilot": _of_copilot,
    "qwen": _of_qwen,
    "hermes": _of_hermes,
    "aider": _of_aider,
}


def record(vendor: Vendor, home: Path, only: list[str]) -> None:
    """Record all situations of one program."""
    last = None
    for situation in situations(vendor):
        if only and situation.name not in only:
            continue
        found = run(vendor, situation, home, last)
        last = find_session(found) or last
        path = RECORDED / vendor.name / f"{situation.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(found))
        sys.stdout.write(f"{vendor.name} {situation.name}: {found['exit']}\n")
        sys.stdout.flush()


def main() -> int:
    """Record those that are named, or, after --only, single situations of one."""
    words = sys.argv[1:]
    only = words[words.index("--only") + 1 :] if "--only" in words else []
    names = words[: words.index("--only")] if "--only" in words else words
    for vendor in (CLAUDE, CODEX, GEMINI, OPENCODE, COPILOT, QWEN, HERMES, AIDER):
        if vendor.name in names:
            with tempfile.TemporaryDirectory(prefix="recording-") as home:
                record(vendor, Path(home), only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
