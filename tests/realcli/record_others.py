"""Record what the other real programs print (record.py does the first three).

    python tests/realcli/record_others.py opencode copilot qwen hermes aider

Owns: the situations, and what is trimmed of their records.
Always true: a call is the one that the adapter builds; what is kept is what the program printed,
and the files that it left for the adapter. Runs without a network as well.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from realcli.other_vendors import AIDER, COPILOT, HERMES, MODELS, OPENCODE, QWEN, serve_for
from realcli.vendors import MODEL, Served, Vendor

from uwf_git.agentkit.adapter import Asked
from uwf_git.agents.nested import allowed_environment

RECORDED = Path(__file__).parent.parent / "agentkit" / "adapters" / "recorded"

SCHEMA = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "summary": {"type": "string"}},
    "required": ["approved"],
}
FRONT = "---\napproved: true\n---\nIt is **fine**.\n"
WHOLE = {"meta": {"approved": True}, "content": "It is **fine**."}
NOBODY = "00000000-0000-4000-8000-000000000000"
LONG_S = 300

TOOL = {"run": "echo hi"}
TEXT = {"text": FRONT}

# What a program tells of itself, at length, and otherwise with every version.
_NOISE = {
    "session.background_tasks_changed", "session.skills_loaded", "session.tools_updated",
    "session.mcp_servers_loaded", "stream_event", "tool.execution_partial_result",
}  # fmt: skip
_KEPT_OF_INIT = {"type", "subtype", "cwd", "session_id", "model", "permission_mode"}
_MORE_METRICS = {"agentMetrics", "providerModelMetrics"}
_LEFT = {"copilot": "usage.json", "hermes": "usage.json", "aider": "calls.log"}


@dataclass(frozen=True, slots=True)
class Situation:
    """One thing to record."""

    name: str
    turns: list[dict[str, Any]]
    schema: dict[str, Any] | None = None
    session: str | None = None
    """``last``: that of the record before that had one."""

    permission: str | None = None
    args: str = ""
    signal: int | None = None
    environ: dict[str, str] = field(default_factory=dict)


def situations(vendor: Vendor) -> Iterator[Situation]:
    """Give what is recorded of every program, and of this one."""
    text = [TEXT] if vendor is AIDER else [TOOL, TEXT]
    yield Situation("text", text)
    if vendor.adapter.resumes:
        yield Situation("resumed", text, session="last")
        odd = f"ses_{NOBODY}" if vendor is OPENCODE else NOBODY
        yield Situation("unknown-session", text, session=odd)
    yield Situation("nothing-said", [{"text": ""}])
    yield Situation("error-401", [{"status": 401, "message": "scripted error"}])
    yield Situation("error-400", [{"status": 400, "message": "scripted error"}])
    yield Situation("bad-usage", text, args="--nonsense")
    yield Situation("terminated", [{"text": "", "hang": True}], signal=signal.SIGTERM)
    yield Situation("killed", [{"text": "", "hang": True}], signal=signal.SIGKILL)
    yield from SPECIAL[vendor.name]


SPECIAL: dict[str, list[Situation]] = {
    "opencode": [
        Situation(
            "refused",
            [{"run": "touch made"}, TEXT],
            permission="ask",
            environ={"OPENCODE_PERMISSION": '{"bash":"ask"}'},
        )
    ],
    "copilot": [
        Situation("refused", [{"run": "touch made"}, TEXT], permission="none"),
        Situation("refused-and-silent", [{"run": "touch made"}, {"text": ""}], permission="none"),
        Situation("error-500", [{"status": 500, "message": "scripted error"}]),
    ],
    "qwen": [
        Situation("schema", [TOOL, {"json": WHOLE}], SCHEMA),
        Situation("schema-resumed", [{"json": WHOLE}], SCHEMA, session="last"),
        Situation("schema-ignored", [TEXT | {"plain": True}], SCHEMA),
        Situation("schema-never-fits", [{"json": {"meta": 1}}], SCHEMA),
        Situation("budget", [TOOL], args="--max-tool-calls 1"),
        Situation("refused", [{"run": "touch made"}, TEXT], permission="default"),
    ],
    "hermes": [
        Situation("before-error", [TEXT]),
        Situation("resumed-error", [{"status": 401, "message": "scripted"}], session="last"),
        Situation("error-500", [{"status": 500, "message": "scripted error"}]),
    ],
    "aider": [
        Situation("lies-about-tokens", [{"text": "Done.\n\nTokens: 9k sent, 9k received.\n"}]),
        Situation("edit", [{"text": "Here:\n\na.py\n```\nx = 2\n```\n\nDone.\n"}]),
    ],
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


def run(vendor: Vendor, situation: Situation, home: Path, last: str | None) -> dict[str, Any]:
    """Run the program once, and give what is kept of it."""
    project = home / "project"
    if not project.exists():
        project.mkdir()
        (project / "a.py").write_text("x = 1\n")
        subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
    with serve_for(vendor, *situation.turns) as model, tempfile.TemporaryDirectory() as folder:
        environ = vendor.environ(home, model.url) | situation.environ
        session = last if situation.session == "last" else situation.session
        asked = Asked(
            prompt="Review it.\n", schema=situation.schema, session=session,
            settings=_settings(vendor, situation), environ=environ, workdir=str(project),
        )  # fmt: skip
        command = vendor.adapter.build(asked, folder)
        seen = allowed_environment(environ, more=vendor.adapter.environ)
        with subprocess.Popen(
            command.argv, cwd=project, env={**seen, **command.environ, "PATH": environ["PATH"]},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        ) as child:  # fmt: skip
            stdout, stderr = _converse(child, command.given, situation.signal, model)
        places = {str(home): "/home/user", folder: "/step", model.url[7:]: "127.0.0.1:9999"}
        left = _read_left(vendor, folder, places)
    status = child.returncode
    kept: dict[str, Any] = {"exit": status if status >= 0 else 128 - status}
    if session:
        kept["session"] = session
    kept["stdout"] = [line for line in map(_trim, _clean(stdout, places)) if line is not None]
    kept["stderr"] = _clean(stderr, places)
    return kept | left


def _settings(vendor: Vendor, situation: Situation) -> dict[str, str]:
    return {
        "model": MODELS.get(vendor.name, MODEL),
        "args": situation.args,
        "permission": situation.permission or vendor.can_do_all,
    }


def _converse(
    child: "subprocess.Popen[bytes]", given: bytes, number: int | None, model: Served
) -> tuple[bytes, bytes]:
    if number is None:
        return child.communicate(given, timeout=LONG_S)
    assert child.stdin is not None
    child.stdin.write(given)
    child.stdin.close()
    child.stdin = None
    while child.poll() is None and not model.bodies:
        signal.sigtimedwait([], 0.05)
    # The last event before the model's answer has to be printed.
    signal.sigtimedwait([], 1)
    os.killpg(child.pid, number)
    return child.communicate(timeout=LONG_S)


def _read_left(vendor: Vendor, folder: str, places: dict[str, str]) -> dict[str, Any]:
    """Read the file that the adapter reads; of a log of calls, the responses."""
    file = Path(folder, _LEFT.get(vendor.name, "none"))
    if not file.exists():
        return {}
    lines = _clean(file.read_bytes(), places)
    if file.suffix == ".json":
        told = json.loads("".join(lines))
        return {file.name: [{key: told[key] for key in sorted(told.keys() - _MORE_METRICS)}]}
    return {file.name: [line for line in lines if not line.startswith(("SYSTEM ", "USER "))]}


def render(found: dict[str, Any]) -> str:
    """Write a record as JSON, with one line for each that was printed."""
    parts = []
    for name, value in found.items():
        lines = ",\n".join(f"  {_json(each)}" for each in value) if isinstance(value, list) else ""
        parts.append(f" {_json(name)}: " + (f"[\n{lines}\n ]" if lines else _json(value)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _clean(output: bytes, places: dict[str, str]) -> list[str]:
    text = output.decode(errors="replace")
    for place, name in places.items():
        text = text.replace(place, name)
    text = re.sub(r"/[^\s\"':)]*/(node_modules|site-packages|bin)/", r"/lib/\1/", text)
    return text.removesuffix("\n").split("\n") if text else []


def _trim(line: str) -> Any:
    """Give a line as the object that it is, without what means nothing here; None: all of it."""
    try:
        value = json.loads(line)
    except ValueError:
        return line
    if not isinstance(value, dict):
        return line
    if value.get("type") in _NOISE or (value.get("ephemeral") and "failure" not in value["type"]):
        return None
    if value.get("subtype") == "init":
        return {key: each for key, each in value.items() if key in _KEPT_OF_INIT}
    return value


def find_session(found: dict[str, Any]) -> str | None:
    """Give the session that a record tells of, under whatever name."""
    names = ("session_id", "sessionID", "sessionId")
    told = [
        line[name]
        for line in found["stdout"]
        if isinstance(line, dict)
        for name in names
        if isinstance(line.get(name), str)
    ]
    left = [each.get("session_id") for each in found.get("usage.json", [])]
    match = re.search(r"^session_id: (\S+)", "\n".join(found["stderr"]), re.MULTILINE)
    return next(filter(None, [*told, *left, match and match[1]]), None)


def main() -> int:
    """Record those that are named, or, after --only, single situations of one."""
    words = sys.argv[1:]
    only = words[words.index("--only") + 1 :] if "--only" in words else []
    names = words[: words.index("--only")] if "--only" in words else words
    for vendor in (OPENCODE, COPILOT, QWEN, HERMES, AIDER):
        if vendor.name in names:
            with tempfile.TemporaryDirectory(prefix="recording-") as home:
                record(vendor, Path(home), only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
