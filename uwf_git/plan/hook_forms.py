"""The stop hook in the form of each AI tool: which events, in which file of a project.

A hook that prints nothing and ends with 0 lets every tool go on. Timeouts are in seconds. Codex
asks a person to review a project's hooks, and skips them silently until then. Any other tool that
can run a command when it has stopped takes the hook's command as it is.
"""

import json
import os
import shlex
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

HOOK_VARIABLE = "UWF_STOP_HOOK"
"""What the agents of a run are given: its thread, a colon, and the path of the hook's script."""

NAME = "uwf-stop"
DESCRIPTION = "Tells uwf when this tool stops"

_TIMEOUT_S = 10


class StopHook(NamedTuple):
    """The program that tells of a stop; both paths are absolute."""

    python: str
    script: str

    @property
    def argv(self) -> list[str]:
        """The command; isolated, so that no variable of the user's makes it print."""
        return [self.python, "-I", self.script]

    @property
    def command(self) -> str:
        """The command as text, for the shell that the system has."""
        if os.name == "nt":
            return " ".join(f'"{word}"' for word in self.argv)
        return shlex.join(self.argv)


class ProjectForm(NamedTuple):
    """What a tool reads of a project: settings to be merged."""

    settings: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    """By path from the work directory: the JSON to be merged into that file."""

    advice: str = ""
    """What a person has to do besides."""


TOOLS = ("claude", "copilot", "codex", "other")

INSTALLED_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    ".claude/settings.local.json": {},
    ".codex/hooks.json": {},
    ".gemini/settings.json": {},
    ".qwen/settings.json": {},
    ".cursor/hooks.json": {"version": 1},
}
"""The settings into which a version of uwf has merged its hook, and what else it put there."""

INSTALLED_FILES = (
    f".github/hooks/{NAME}.json",
    f".opencode/plugins/{NAME}.js",
    f".agents/plugins/{NAME}/plugin.json",
    f".agents/plugins/{NAME}/hooks/hooks.json",
)
"""The files of a project that a version of uwf has written, and nobody else."""


def build_plugin(hook: StopHook, version: str) -> dict[str, str]:
    """Return the files of a plugin of claude and copilot, by path from its folder.

    ``manifest.json`` is the seed's; ``.claude-plugin/plugin.json`` is what the tools read.
    """
    about = {"name": NAME, "version": version, "description": DESCRIPTION}
    return {
        "manifest.json": _json({**about, "hooks": "hooks/config.json"}),
        ".claude-plugin/plugin.json": _json({**about, "hooks": "./hooks/config.json"}),
        "hooks/config.json": _json(_nested(hook, "Stop", "SessionEnd")),
    }


def list_run_words(tool: str, hook: StopHook, plugin: str) -> list[str]:
    """Return the words by which a run of *tool* gets the hook, without settings or trust.

    *plugin* is the folder of the plugin. [] if the tool has no such words.
    """
    if tool in {"claude", "copilot"}:
        return ["--plugin-dir", plugin]
    if tool == "codex":
        # An array of texts is the same in TOML as in JSON.
        return ["-c", f"notify={json.dumps(hook.argv, ensure_ascii=False)}"]
    return []


def list_words_of_turn(tool: str, environ: Mapping[str, str]) -> list[str]:
    """Return the words by which a run of *tool* gets the hook, if the turn in *environ* has one.

    An agent of another thread, which an agent of this one has started, gets none.
    """
    thread, _, script = environ.get(HOOK_VARIABLE, "").partition(":")
    if not script or thread != environ.get("UWF_THREAD_ID"):
        return []
    folder = os.path.dirname(os.path.dirname(script))
    return list_run_words(tool, StopHook(sys.executable, script), folder)


def build_form(tool: str, hook: StopHook) -> ProjectForm:
    """Return the form of *tool*, one of ``TOOLS``."""
    match tool:
        case "claude":
            settings = _nested(hook, "Stop", "SessionEnd")
            return ProjectForm({".claude/settings.local.json": settings})
        case "codex":
            return ProjectForm(
                {".codex/hooks.json": _nested(hook, "Stop")},
                "open codex in this project and review its hooks: until then it skips them",
            )
        case "copilot":
            return ProjectForm(advice="copilot reads the plugin: give it the words of `run`")
    return ProjectForm(advice=f"have the tool run this when it has stopped: {hook.command}")


def _nested(hook: StopHook, *events: str) -> dict[str, Any]:
    """Return the settings of claude and those that took its form."""
    entry = {"type": "command", "command": hook.command, "timeout": _TIMEOUT_S}
    return {"hooks": {event: [{"hooks": [dict(entry)]}] for event in events}}


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
