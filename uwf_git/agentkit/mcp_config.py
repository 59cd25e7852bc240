"""MCP configuration: how an agent program is told of `uwf mcp`.

Owns: the command of the server, and the shapes in which programs take it.
Knows nothing of: the server. Always true: the server gets what it needs (which store, thread,
role and step) by variables. They are written down in the entry, since many programs start their
MCP servers with an environment of their own; but not for a program that keeps the entry.
"""

import json
import shlex
import sys
from collections.abc import Mapping
from typing import Any

SERVER = "uwf"

_OF_THE_TURN = ("UWF_REPO", "UWF_THREAD_ID", "UWF_ROLE", "UWF_HEAD", "UWF_STEP_DIR")
_PASSED = (*_OF_THE_TURN, "PYTHONPATH")


def mcp_entry(environ: Mapping[str, str]) -> dict[str, Any]:
    """Give ``command``, ``args`` and ``env`` of the server for the turn in *environ*."""
    env = {name: environ[name] for name in _PASSED if environ.get(name)}
    return {"command": sys.executable, "args": ["-P", "-m", "uwf_git", "mcp"], "env": env}


def find_mcp_entry(
    environ: Mapping[str, str], settings: Mapping[str, str]
) -> dict[str, Any] | None:
    """Give the entry; None without a turn, whose thread the server would read.

    None as well if the setting ``mcp`` is off.
    """
    if settings.get("mcp") == "off":
        return None
    if not (environ.get("UWF_REPO") and environ.get("UWF_THREAD_ID")):
        return None
    return mcp_entry(environ)


def mcp_servers_json(environ: Mapping[str, str], **more: Any) -> str:
    """Give the JSON that claude and qwen take by ``--mcp-config``, copilot by its own option.

    *more* is added to the entry, for example ``alwaysLoad=True`` for claude.
    """
    return json.dumps({"mcpServers": {SERVER: {**mcp_entry(environ), **more}}})


def mcp_toml(environ: Mapping[str, str]) -> str:
    """Give the setting that codex takes by ``-c``."""
    entry = mcp_entry(environ)
    env = ",".join(f"{name}={_toml(value)}" for name, value in entry["env"].items())
    args = ",".join(map(_toml, entry["args"]))
    return (
        f"mcp_servers.{SERVER}={{command={_toml(entry['command'])},args=[{args}],env={{{env}}},"
        'default_tools_approval_mode="approve"}'
    )


def mcp_command_line(environ: Mapping[str, str]) -> str:
    """Give the one text that goose takes by ``--with-extension``: variables, then the command.

    goose writes it down with the session, and starts it so again whenever that goes on: what
    changes from turn to turn may not stand in it. The server sees goose's own variables.
    """
    entry = mcp_entry(environ)
    kept = [f"{name}={value}" for name, value in entry["env"].items() if name not in _OF_THE_TURN]
    return shlex.join([*kept, entry["command"], *entry["args"]])


def _toml(text: str) -> str:
    """Write *text* as a TOML string: JSON's escapes are TOML's, but for the DEL character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
