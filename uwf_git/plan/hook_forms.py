"""The stop hook in the form of each AI tool: which events, in which file of a project.

A hook that prints nothing and ends with 0 lets every tool go on. Timeouts are in seconds for
claude, copilot and codex, in milliseconds for gemini, and in either for qwen, by its version:
those two get none. Codex asks a person to review a project's hooks, and skips them silently until
then.
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

    @property
    def powershell(self) -> str:
        """The command as text for PowerShell."""
        quoted = ["'" + word.replace("'", "''") + "'" for word in self.argv]
        return f"& {' '.join(quoted)}"


class ProjectForm(NamedTuple):
    """What a tool reads of a project: settings to be merged, or files that are ours alone."""

    settings: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    """By path from the work directory: the JSON to be merged into that file."""

    files: Mapping[str, str] = MappingProxyType({})
    """By path from the work directory: the text of a file that nobody else writes."""

    advice: str = ""
    """What a person has to do besides."""


TOOLS = (
    "claude",
    "copilot",
    "codex",
    "gemini",
    "qwen",
    "opencode",
    "opencode2",
    "cursor",
    "goose",
    "hermes",
)


def build_plugin(hook: StopHook, version: str) -> dict[str, str]:
    """Return the files of a plugin of claude and copilot, by path from its folder.

    ``manifest.json`` is the seed's; ``.claude-plugin/plugin.json`` is what the tools read.
    """
    about = {"name": NAME, "version": version, "description": DESCRIPTION}
    return {
        "manifest.json": _json({**about, "hooks": "hooks/config.json"}),
        ".claude-plugin/plugin.json": _json({**about, "hooks": "./hooks/config.json"}),
        "hooks/config.json": _json(_nested(hook, "Stop", "SessionEnd", timeout=_TIMEOUT_S)),
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


def build_form(tool: str, hook: StopHook, version: str) -> ProjectForm:
    """Return the form of *tool*, one of ``TOOLS``."""
    return _FORMS[tool](hook, version)


def _claude(hook: StopHook, _: str) -> ProjectForm:
    settings = _nested(hook, "Stop", "SessionEnd", timeout=_TIMEOUT_S)
    return ProjectForm({".claude/settings.local.json": settings})


def _copilot(hook: StopHook, _: str) -> ProjectForm:
    entry = {
        "type": "command",
        "bash": shlex.join(hook.argv),
        "powershell": hook.powershell,
        "timeoutSec": _TIMEOUT_S,
    }
    hooks = {"agentStop": [entry], "sessionEnd": [entry]}
    return ProjectForm(files={f".github/hooks/{NAME}.json": _json({"version": 1, "hooks": hooks})})


def _codex(hook: StopHook, _: str) -> ProjectForm:
    return ProjectForm(
        {".codex/hooks.json": _nested(hook, "Stop", timeout=_TIMEOUT_S)},
        advice="open codex in this project and review its hooks: until then it skips them",
    )


def _gemini(hook: StopHook, _: str) -> ProjectForm:
    return ProjectForm(
        {".gemini/settings.json": _nested(hook, "AfterAgent", "SessionEnd", name=NAME)},
        # Tried with 0.61: `--skip-trust` is read after the settings, and so does not count.
        advice="gemini runs hooks only in a folder that it trusts: trust it in gemini, or set "
        "GEMINI_CLI_TRUST_WORKSPACE=true",
    )


def _qwen(hook: StopHook, _: str) -> ProjectForm:
    return ProjectForm({".qwen/settings.json": _nested(hook, "Stop")})


def _cursor(hook: StopHook, _: str) -> ProjectForm:
    hooks = {event: [{"command": hook.command}] for event in ("stop", "sessionEnd")}
    return ProjectForm({".cursor/hooks.json": {"version": 1, "hooks": hooks}})


def _opencode(hook: StopHook, _: str) -> ProjectForm:
    return _opencode_form(_OPENCODE_1, hook)


def _opencode2(hook: StopHook, _: str) -> ProjectForm:
    return _opencode_form(_OPENCODE_2, hook)


def _opencode_form(module: str, hook: StopHook) -> ProjectForm:
    text = module.replace("ARGV", json.dumps(hook.argv, ensure_ascii=False))
    return ProjectForm(
        files={_OPENCODE: text},
        advice="where a project has plugins, the first run of opencode gets packages from npm",
    )


def _goose(hook: StopHook, version: str) -> ProjectForm:
    about = {"name": NAME, "version": version, "description": DESCRIPTION}
    folder = f".agents/plugins/{NAME}"
    return ProjectForm(
        files={
            f"{folder}/plugin.json": _json(about),
            f"{folder}/hooks/hooks.json": _json(_nested(hook, "Stop", "SessionEnd")),
        }
    )


def _hermes(hook: StopHook, _: str) -> ProjectForm:
    lines = (
        "put this into ~/.hermes/config.yaml, which is not a file of the project:",
        "hooks:",
        "  on_session_end:",
        f"    - command: {json.dumps(hook.command, ensure_ascii=False)}",
    )
    return ProjectForm(advice="\n".join(lines))


_FORMS = {
    "claude": _claude,
    "copilot": _copilot,
    "codex": _codex,
    "gemini": _gemini,
    "qwen": _qwen,
    "opencode": _opencode,
    "opencode2": _opencode2,
    "cursor": _cursor,
    "goose": _goose,
    "hermes": _hermes,
}

_OPENCODE = f".opencode/plugins/{NAME}.js"

# The process of opencode may end right after the event.
_OPENCODE_1 = """\
// Written by `uwf plan plugin`; changes are lost.
import { spawn } from "node:child_process"

const [program, ...words] = ARGV

export const UwfStop = async () => ({
  event: async ({ event }) => {
    if (event.type !== "session.idle") return
    spawn(program, words, { stdio: "ignore", detached: true }).on("error", () => {}).unref()
  },
})
"""

_OPENCODE_2 = """\
// Written by `uwf plan plugin`; changes are lost.
import { spawn } from "node:child_process"

const [program, ...words] = ARGV
const ends = ["succeeded", "failed", "interrupted"].map((word) => `session.execution.${word}`)

async function listen(ctx) {
  for await (const event of ctx.event.subscribe()) {
    if (!ends.includes(event.type)) continue
    spawn(program, words, { stdio: "ignore", detached: true }).on("error", () => {}).unref()
  }
}

export default {
  id: "uwf-stop",
  // Plugins are loaded one after the other, so the events are not waited for.
  setup: async (ctx) => void listen(ctx).catch(() => {}),
}
"""


def _nested(
    hook: StopHook, *events: str, timeout: int | None = None, name: str | None = None
) -> dict[str, Any]:
    """Return the settings of claude and those that took its form."""
    entry: dict[str, Any] = {} if name is None else {"name": name}
    entry |= {"type": "command", "command": hook.command}
    entry |= {} if timeout is None else {"timeout": timeout}
    return {"hooks": {event: [{"hooks": [dict(entry)]}] for event in events}}


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
