"""Record what the real programs print, for the tests of their adapters.

    python tests/realcli/record.py claude codex gemini

Owns: the situations, and what is trimmed of their records.
Always true: a call is the one that the adapter builds; what is kept is what the program printed,
but for long lists of its own, and the names of places. To be run after every change of a pinned
version (install.sh), and its diff read.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from realcli.vendors import CLAUDE, CODEX, GEMINI, MODEL, Vendor, serve

from uwf_git.agentkit.adapter import Asked
from uwf_git.agents.nested import allowed_environment

RECORDED = Path(__file__).parent.parent / "agentkit" / "adapters" / "recorded"

SCHEMA = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "summary": {"type": "string"}},
    "required": ["approved"],
    "additionalProperties": False,
}
FRONT = "---\napproved: true\n---\nIt is **fine**.\n"
WHOLE = {"meta": {"approved": True, "summary": None}, "content": "It is **fine**."}
ASKED = "Review it.\n"
NOBODY = "00000000-0000-4000-8000-000000000000"
LONG_S = 900

# What a program tells of itself, at length, and otherwise with every version.
_TRIMMED = {"subagent_stats", "tool_use_result", "tool_result_meta"}
_KEPT_OF_INIT = {"type", "subtype", "cwd", "session_id", "model", "permissionMode"}


@dataclass(frozen=True, slots=True)
class Situation:
    """One thing to record."""

    name: str
    turns: list[dict[str, Any]]
    schema: dict[str, Any] | None = None
    session: str | None = None
    """``last``: that of the record before."""

    permission: str | None = None
    args: str = ""
    signal: int | None = None
    """Sent to its group once it has begun to ask."""

    without: tuple[str, ...] = ()
    """Variables that are taken away."""

    settings: str = ""
    """Written over its settings file."""

    environ: dict[str, str] = field(default_factory=dict)


def situations(vendor: Vendor) -> Iterator[Situation]:
    """Give what is recorded of every program, and of this one."""
    everything = vendor.can_do_all
    text = [{"run": "echo hi"}, {"text": FRONT}]
    hangs = [{"text": "", "hang": True}]
    yield Situation("text", text, permission=everything)
    yield Situation("resumed", text, permission=everything, session="last")
    yield Situation("unknown-session", text, session=NOBODY)
    yield Situation("odd-session", text, session="nonsense")
    yield Situation("nothing-said", [{"text": ""}])
    for status in (400, 401, 429, 500):
        yield Situation(f"error-{status}", [{"status": status, "message": "scripted error"}])
    yield Situation("bad-usage", text, args="--nonsense")
    yield Situation("terminated", hangs, signal=signal.SIGTERM)
    yield Situation("interrupted", hangs, signal=signal.SIGINT)
    yield Situation("killed", hangs, signal=signal.SIGKILL)
    yield from SPECIAL[vendor.name]()


def _of_claude() -> Iterator[Situation]:
    run = {"run": 'python3 -c \'open("made", "w")\''}
    wrong = {"approved": "perhaps"}
    yield Situation("schema", [{"run": "echo hi"}, {"json": WHOLE | {"meta": {"approved": True}}}],
                    SCHEMA)  # fmt: skip
    yield Situation("schema-ignored", [{"text": FRONT, "plain": True}], SCHEMA)
    yield Situation("schema-never-fits", [{"json": wrong}], SCHEMA)
    yield Situation("schema-not-json", [{"text": FRONT}], args="--json-schema '{'")
    yield Situation("refused", [run, {"text": FRONT}])
    yield Situation("refused-and-nothing-said", [run, {"text": ""}])
    yield Situation("max-turns", [{"run": "echo hi"}, {"text": FRONT}], args="--max-turns 1")
    yield Situation("as-root", [{"text": FRONT}], permission="bypassPermissions",
                    without=("IS_SANDBOX",))  # fmt: skip
    yield Situation("no-login", [{"text": FRONT}], without=("ANTHROPIC_API_KEY",))
    headers = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": "1795000000",
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
    }
    limit = {"status": 429, "message": "This request would exceed your account's rate limit."}
    yield Situation("usage-limit", [limit | {"headers": headers}], without=("ANTHROPIC_API_KEY",),
                    environ={"CLAUDE_CODE_OAUTH_TOKEN": "t-0123456789"})  # fmt: skip


def _of_codex() -> Iterator[Situation]:
    yield Situation("schema", [{"json": WHOLE}], SCHEMA)
    yield Situation("schema-ignored", [{"text": FRONT, "plain": True}], SCHEMA)
    yield Situation("refused", [{"run": "touch made"}, {"text": FRONT}], permission="read-only")
    limit = {
        "type": "usage_limit_reached", "message": "The usage limit has been reached",
        "plan_type": "plus", "resets_at": 1795000000, "resets_in_seconds": 3600,
    }  # fmt: skip
    yield Situation("usage-limit", [{"status": 429, "body": {"error": limit}}])


def _of_gemini() -> Iterator[Situation]:
    auth = '"security":{"auth":{"selectedType":"gemini-api-key"}}'
    yield Situation("refused", [{"run": "touch made"}, {"text": FRONT}])
    yield Situation("max-turns", [{"run": "echo hi"}, {"text": FRONT}], permission="yolo",
                    settings=f'{{{auth},"model":{{"maxSessionTurns":1}}}}')  # fmt: skip
    yield Situation("no-login", [{"text": FRONT}], without=("GEMINI_API_KEY",), settings="{}")
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


SPECIAL: dict[str, Callable[[], Iterator[Situation]]] = {
    "claude": _of_claude,
    "codex": _of_codex,
    "gemini": _of_gemini,
}


def record(vendor: Vendor, home: Path, only: list[str]) -> None:
    """Record all situations of one program."""
    last = None
    for situation in situations(vendor):
        if only and situation.name not in only:
            continue
        found = run(vendor, situation, home, last)
        last = find_session(found["stdout"]) or last
        path = RECORDED / vendor.name / f"{situation.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(found))
        sys.stdout.write(f"{vendor.name} {situation.name}: {found['exit']}\n")
        sys.stdout.flush()


def run(vendor: Vendor, situation: Situation, home: Path, last: str | None) -> dict[str, Any]:
    """Run the program once, and give what is kept of it."""
    project = home / "project"
    project.mkdir(exist_ok=True)
    with serve(*situation.turns) as model, tempfile.TemporaryDirectory() as folder:
        environ = vendor.environ(home, model.url) | situation.environ
        if situation.settings:
            (home / f".{vendor.name}" / "settings.json").write_text(situation.settings)
        environ = {name: environ[name] for name in environ if name not in situation.without}
        session = last if situation.session == "last" else situation.session
        settings = {"model": MODEL, "args": situation.args}
        if situation.permission:
            settings["permission"] = situation.permission
        asked = Asked(
            prompt=ASKED, schema=situation.schema, session=session, settings=settings,
            environ=environ,
        )  # fmt: skip
        command = vendor.adapter.build(asked, folder)
        seen = allowed_environment(environ, more=vendor.adapter.environ)
        with subprocess.Popen(
            command.argv, cwd=project, env={**seen, **command.environ}, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        ) as child:  # fmt: skip
            stdout, stderr = _converse(child, command.given, situation.signal, model.bodies)
        if situation.settings:
            (home / f".{vendor.name}" / "settings.json").unlink()
    status = child.returncode
    kept: dict[str, Any] = {"exit": status if status >= 0 else 128 - status}
    if session:
        kept["session"] = session
    places = {str(home): "/home/user", model.url.removeprefix("http://"): "127.0.0.1:9999"}
    kept["stdout"] = [_trim(line) for line in _clean(stdout, places)]
    kept["stderr"] = _clean(stderr, places)
    return kept


def render(found: dict[str, Any]) -> str:
    """Write a record as JSON, with one line for each that was printed."""
    parts = []
    for name, value in found.items():
        lines = ",\n".join(f"  {_json(each)}" for each in value) if isinstance(value, list) else ""
        parts.append(f" {_json(name)}: " + (f"[\n{lines}\n ]" if lines else _json(value)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _converse(
    child: "subprocess.Popen[bytes]", given: bytes, number: int | None, bodies: list[Any]
) -> tuple[bytes, bytes]:
    if number is None:
        return child.communicate(given, timeout=LONG_S)
    assert child.stdin is not None
    child.stdin.write(given)
    child.stdin.close()
    child.stdin = None
    while child.poll() is None and not bodies:
        signal.sigtimedwait([], 0.05)
    # The last event before the model's answer has to be printed.
    signal.sigtimedwait([], 1)
    os.killpg(child.pid, number)
    return child.communicate(timeout=LONG_S)


def _clean(output: bytes, places: dict[str, str]) -> list[str]:
    text = output.decode(errors="replace")
    for place, name in places.items():
        text = text.replace(place, name)
    text = re.sub(r"file:///[^\s:)]*/node_modules/", "file:///lib/node_modules/", text)
    text = re.sub(r"/[^\s\"':)]*/node_modules/", "/lib/node_modules/", text)
    lines = text.splitlines()
    # Stack traces are all alike.
    frames = [number for number, line in enumerate(lines) if re.match(r"\s+(at |\d+: )", line)]
    return [line for number, line in enumerate(lines) if number not in frames[2:]]


def _trim(line: str) -> Any:
    """Give a line as the object that it is, without what means nothing here."""
    try:
        value = json.loads(line)
    except ValueError:
        return line
    if not isinstance(value, dict):
        return line
    if value.get("subtype") == "init":
        value = {key: each for key, each in value.items() if key in _KEPT_OF_INIT}
    return {key: each for key, each in value.items() if key not in _TRIMMED}


def find_session(lines: list[Any]) -> str | None:
    """Give the session that a record tells of, under whatever name."""
    names = ("session_id", "thread_id", "sessionID", "sessionId")
    told = [
        line[name] for line in lines if isinstance(line, dict) for name in names if name in line
    ]
    return told[0] if told else None


def main() -> int:
    """Record those that are named, or, after --only, single situations of one."""
    words = sys.argv[1:]
    only = words[words.index("--only") + 1 :] if "--only" in words else []
    names = words[: words.index("--only")] if "--only" in words else words
    for vendor in (CLAUDE, CODEX, GEMINI):
        if vendor.name in names:
            with tempfile.TemporaryDirectory(prefix="recording-") as home:
                record(vendor, Path(home), only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
