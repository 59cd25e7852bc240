"""The configuration by which an agent program starts `uwf mcp`.

The server gets store, thread, role and step by variables. They are part of the entry, since many
programs start MCP servers with an environment of their own.
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
    """Return ``command``, ``args`` and ``env`` of the server for the turn in *environ*."""
    env = {name: environ[name] for name in _PASSED if environ.get(name)}
    return {"command": sys.executable, "args": ["-P", "-m", "uwf_git", "mcp"], "env": env}


def find_mcp_entry(
    environ: Mapping[str, str], settings: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the entry; None outside a turn, or if the setting ``mcp`` is off."""
    if settings.get("mcp") == "off":
        return None
    if not (environ.get("UWF_REPO") and environ.get("UWF_THREAD_ID")):
        return None
    return mcp_entry(environ)


def mcp_servers_json(entry: Mapping[str, Any] | None, **more: Any) -> str | None:
    """Return the JSON that claude, qwen and copilot take; *more* is added to the entry."""
    return None if entry is None else json.dumps({"mcpServers": {SERVER: {**entry, **more}}})


def mcp_toml(entry: Mapping[str, Any] | None) -> str | None:
    """Return the setting that codex takes by ``-c``."""
    if entry is None:
        return None
    env = ",".join(f"{name}={_toml(value)}" for name, value in entry["env"].items())
    args = ",".join(map(_toml, entry["args"]))
    return (
        f"mcp_servers.{SERVER}={{command={_toml(entry['command'])},args=[{args}],env={{{env}}},"
        'default_tools_approval_mode="approve"}'
    )


def mcp_command_line(entry: Mapping[str, Any] | None) -> str | None:
    """Return the text that goose takes by ``--with-extension``: variables, then the command.

    goose stores it with the session and starts it again in later turns, so it holds nothing that
    changes from turn to turn. The server inherits goose's own variables.
    """
    if entry is None:
        return None
    kept = [f"{name}={value}" for name, value in entry["env"].items() if name not in _OF_THE_TURN]
    return shlex.join([*kept, entry["command"], *entry["args"]])


def _toml(text: str) -> str:
    """Return *text* as a TOML string: JSON's escapes are TOML's, except for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
