"""Call a real program once, and trim the record of the call.

The call is the one that the adapter builds. The record holds the output and the files for the
adapter, without long lists and the names of places.
"""

import json
import os
import re
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from realcli.served_model import serve
from realcli.vendors import Vendor

from uwf_git.agentkit.turn import AdapterQuestion
from uwf_git.agents.nested import allowed_environment

ASKED = "Review it.\n"
LONG_S = 900

# Long descriptions that a program gives of itself; they differ with every version.
_NOISE = {
    "session.background_tasks_changed", "session.skills_loaded", "session.tools_updated",
    "session.mcp_servers_loaded", "stream_event", "tool.execution_partial_result",
}  # fmt: skip
_TRIMMED = {"subagent_stats", "tool_use_result", "tool_result_meta"}
_KEPT_OF_INIT = {
    "type", "subtype", "cwd", "session_id", "model", "permissionMode", "permission_mode",
}  # fmt: skip
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
    """Sent to its group once it has begun to ask."""

    without: tuple[str, ...] = ()
    """Variables that are taken away."""

    settings: str = ""
    """Written over its settings file."""

    environ: dict[str, str] = field(default_factory=dict)


def run(vendor: Vendor, situation: Situation, home: Path, last: str | None) -> dict[str, Any]:
    """Run the program once, and return its recording; *last* is the session before."""
    project = _make_project(home)
    own_settings = home / f".{vendor.name}" / "settings.json"
    with (
        serve(*situation.turns, aside=vendor.aside) as model,
        tempfile.TemporaryDirectory() as folder,
    ):
        environ = vendor.environ(home, model.url) | situation.environ
        if situation.settings:
            own_settings.write_text(situation.settings)
        environ = {name: environ[name] for name in environ if name not in situation.without}
        session = last if situation.session == "last" else situation.session
        question = AdapterQuestion(
            prompt=ASKED, schema=situation.schema, session=session, environ=environ,
            settings=_settings(vendor, situation), workdir=str(project),
        )  # fmt: skip
        command = vendor.adapter.build(question, folder)
        seen = allowed_environment(environ, more=vendor.adapter.environ)
        with subprocess.Popen(
            command.argv, cwd=project, env={**seen, **command.environ, "PATH": environ["PATH"]},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        ) as child:  # fmt: skip
            stdout, stderr = _converse(
                child, command.given.encode(), situation.signal, model.bodies
            )
        if situation.settings:
            own_settings.unlink()
        places = {
            str(home): "/home/user", folder: "/step",
            model.url.removeprefix("http://"): "127.0.0.1:9999",
        }  # fmt: skip
        left = _read_left(vendor, folder, places)
    status = child.returncode
    kept: dict[str, Any] = {"exit": status if status >= 0 else 128 - status}
    if session:
        kept["session"] = session
    kept["stdout"] = [line for line in map(_trim, _clean(stdout, places)) if line is not None]
    kept["stderr"] = _clean(stderr, places)
    return kept | left


def render(found: dict[str, Any]) -> str:
    """Write a record as JSON, with one line for each that was printed."""
    parts = []
    for name, value in found.items():
        lines = ",\n".join(f"  {_json(each)}" for each in value) if isinstance(value, list) else ""
        parts.append(f" {_json(name)}: " + (f"[\n{lines}\n ]" if lines else _json(value)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def find_session(found: dict[str, Any]) -> str | None:
    """Return the session in a record, under any of its names."""
    names = ("session_id", "thread_id", "sessionID", "sessionId")
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


def _make_project(home: Path) -> Path:
    """Return a repository with a file that can be edited."""
    project = home / "project"
    if not project.exists():
        project.mkdir()
        (project / "a.py").write_text("x = 1\n")
        subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
    return project


def _settings(vendor: Vendor, situation: Situation) -> dict[str, str]:
    settings = {"model": vendor.model, "args": situation.args}
    return settings | ({"permission": situation.permission} if situation.permission else {})


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


def _clean(output: bytes, places: dict[str, str]) -> list[str]:
    text = output.decode(errors="replace")
    for place, name in places.items():
        text = text.replace(place, name)
    text = re.sub(r"/[^\s\"':)]*/(node_modules|site-packages|bin)/", r"/lib/\1/", text)
    lines = text.removesuffix("\n").split("\n") if text else []
    # Stack traces are all alike.
    frames = [number for number, line in enumerate(lines) if re.match(r"\s+(at |\d+: )", line)]
    return [line for number, line in enumerate(lines) if number not in frames[2:]]


def _trim(line: str) -> Any:
    """Return a line as an object without irrelevant keys; None if nothing is left."""
    try:
        value = json.loads(line)
    except ValueError:
        return line
    if not isinstance(value, dict):
        return line
    if value.get("type") in _NOISE or (value.get("ephemeral") and "failure" not in value["type"]):
        return None
    if value.get("subtype") == "init":
        value = {key: each for key, each in value.items() if key in _KEPT_OF_INIT}
    return {key: each for key, each in value.items() if key not in _TRIMMED}
