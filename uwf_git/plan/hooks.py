"""The stop hook of AI tools: its plugin folder, its form for a tool, a project's own settings.

A hook that prints nothing and ends with 0 lets every tool go on. Timeouts are in seconds. Codex
asks a person to review a project's hooks, and skips them silently until then. Any other tool that
can run a command when it has stopped takes the hook's command as it is.
"""

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.agents.reply import BadJson, parse_strict_json
from uwf_git.errors import Refused
from uwf_git.plan.project_files import (
    keep_out_of_git,
    read_whole,
    replace_if_changed,
    resolve_inside,
)

HOOK_VARIABLE = "UWF_STOP_HOOK"
"""What the agents of a run are given: its thread, a colon, and the path of the hook's script."""

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
    ".github/hooks/uwf-stop.json",
    ".opencode/plugins/uwf-stop.js",
    ".agents/plugins/uwf-stop/plugin.json",
    ".agents/plugins/uwf-stop/hooks/hooks.json",
)
"""The files of a project that a version of uwf has written, and nobody else."""

_SCRIPT = ("workflow", "hooks", "stop_hook")
"""The last parts of the path of our script; by them a hook is known as ours."""

_OURS = r"[\\/]+".join(_SCRIPT) + r"\b"
_MARK = "\ufeff"
_INDENT = r"^[{\[]\r?\n([ \t]+)"
_BLANKS = 2
_TIMEOUT_S = 10
_EXECUTABLE = 0o755


class StopHook(NamedTuple):
    """The program that tells of a stop; both paths are absolute."""

    script: str
    python: str = sys.executable

    @property
    def argv(self) -> list[str]:
        """The command; isolated, so that no variable of the user's makes it print."""
        return [self.python, "-I", self.script]

    @property
    def command(self) -> str:
        if os.name == "nt":
            return " ".join(f'"{word}"' for word in self.argv)
        return shlex.join(self.argv)

    @property
    def plugin(self) -> str:
        return os.path.dirname(os.path.dirname(self.script))


# The plugin folder.


def find_hook(workdir: str, plugin_dir: str) -> StopHook:
    hook = StopHook(os.path.join(os.path.abspath(workdir), plugin_dir, *_SCRIPT))
    for name in (*build_plugin(hook, ""), "/".join(_SCRIPT[1:])):
        if resolve_inside(workdir, os.path.join(hook.plugin, name)) is None:
            raise _settings_refused(hook.plugin, "leads out of the work directory")
    return hook


def write_plugin(hook: StopHook, version: str, *, state_file: str) -> list[str]:
    """Write the files of the plugin that are missing or differ; *state_file* is absolute."""
    contents = build_plugin(hook, version)
    place = os.path.relpath(state_file, os.path.dirname(hook.script)).replace(os.sep, "/")
    contents["/".join(_SCRIPT[1:])] = render_stop_hook(place)
    keep_out_of_git(os.path.dirname(hook.plugin))
    written = []
    for name, text in contents.items():
        path = os.path.join(hook.plugin, *name.split("/"))
        if replace_if_changed(path, text.encode()):
            written.append(path)
    os.chmod(hook.script, _EXECUTABLE)
    return written


def build_plugin(hook: StopHook, version: str) -> dict[str, str]:
    """Return the files of a plugin of claude and copilot, by path from its folder.

    ``manifest.json`` is the seed's; ``.claude-plugin/plugin.json`` is what the tools read.
    """
    about = {
        "name": "uwf-stop",
        "version": version,
        "description": "Tells uwf when this tool stops",
    }
    return {
        "manifest.json": _json({**about, "hooks": "hooks/config.json"}),
        ".claude-plugin/plugin.json": _json({**about, "hooks": "./hooks/config.json"}),
        "hooks/config.json": _json(_nested(hook, "Stop", "SessionEnd")),
    }


def render_stop_hook(state_file: str) -> str:
    """Return the text of the hook; *state_file* is the path from its folder."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stop_hook.py")
    with open(source, encoding="utf-8") as file:
        lines = file.read().splitlines(keepends=True)
    (place,) = (n for n, line in enumerate(lines) if line.startswith("STATE_FILE = "))
    lines[place] = f"STATE_FILE = {state_file!r}\n"
    return "".join(["#!/usr/bin/env python3\n", *lines])


# What a tool takes.


def list_run_words(tool: str, hook: StopHook) -> list[str]:
    """Return the words by which a run of *tool* gets the hook, without settings or trust, or []."""
    if tool in {"claude", "copilot"}:
        return ["--plugin-dir", hook.plugin]
    if tool == "codex":
        # An array of texts is the same in TOML as in JSON.
        return ["-c", f"notify={json.dumps(hook.argv, ensure_ascii=False)}"]
    return []


def list_words_of_turn(tool: str, environ: Mapping[str, str]) -> list[str]:
    """Return the words by which a run of *tool* gets the hook, if the turn in *environ* has a hook.

    An agent of another thread, which an agent of this thread has started, gets no hook.
    """
    thread, _, script = environ.get(HOOK_VARIABLE, "").partition(":")
    if not script or thread != environ.get("UWF_THREAD_ID"):
        return []
    return list_run_words(tool, StopHook(script))


def build_settings(tool: str, hook: StopHook) -> dict[str, dict[str, Any]]:
    """Return what a project may hold for *tool*, one of ``TOOLS``: the JSON by its file."""
    match tool:
        case "claude":
            return {".claude/settings.local.json": _nested(hook, "Stop", "SessionEnd")}
        case "codex":
            return {".codex/hooks.json": _nested(hook, "Stop")}
    return {}


def advise(tool: str, hook: StopHook) -> str | None:
    match tool:
        case "claude":
            return None
        case "codex":
            return "open codex in this project and review its hooks: until then it skips them"
        case "copilot":
            return "copilot reads the plugin: give it the words of `run`"
    return f"have the tool run this when it has stopped: {hook.command}"


def _nested(hook: StopHook, *events: str) -> dict[str, Any]:
    """Return the settings of claude and those that took its form."""
    entry = {"type": "command", "command": hook.command, "timeout": _TIMEOUT_S}
    return {"hooks": {event: [{"hooks": [dict(entry)]}] for event in events}}


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


# The settings of a project.


def install_hook(workdir: str, tool: str, hook: StopHook) -> list[str]:
    """Put the hook of *tool* into the project's settings; return the paths that changed."""
    contents = {}
    for path, settings in build_settings(tool, hook).items():
        try:
            contents[path] = add_hooks(_read_settings(workdir, path), settings)
        except NotMergeable as error:
            raise _settings_refused(path, str(error)) from error
    return [
        path
        for path, text in contents.items()
        if replace_if_changed(os.path.join(workdir, path), text.encode())
    ]


def uninstall_hooks(workdir: str) -> list[str]:
    """Take out the hooks that any version of uwf has installed; return the paths that changed.

    An empty file that is left over is removed, and so is its empty folder.
    """
    after = {path: "" for path in INSTALLED_FILES if _is_our_file(workdir, path)}
    for path, others in INSTALLED_SETTINGS.items():
        # What is behind a link, or has no hook of ours, was never ours.
        if not _is_our_file(workdir, path):
            continue
        before = _read_settings(workdir, path)
        try:
            text = remove_hooks(before, others)
        except NotMergeable as error:
            raise _settings_refused(path, str(error)) from error
        if text != before:
            after[path] = text
    for path, text in after.items():
        whole = os.path.join(workdir, path)
        if text:
            replace_if_changed(whole, text.encode())
        else:
            os.unlink(whole)
            _remove_empty(workdir, os.path.dirname(path))
    return list(after)


def _settings_refused(path: str, problem: str) -> Refused:
    return Refused(
        f"{path} {problem}; nothing was changed",
        code="settings-refused",
        hint="mend the file, or edit it by hand: `uwf plan plugin --for TOOL` prints the hook",
        path=path,
    )


def _read_settings(workdir: str, path: str) -> str:
    if _is_linked(workdir, path):
        # It may be the file of all projects, and a replaced link is lost.
        raise _settings_refused(path, "is a link, or lies behind one")
    try:
        return (read_whole(os.path.join(workdir, path)) or b"").decode()
    except UnicodeDecodeError as error:
        raise _settings_refused(path, f"is not UTF-8 (byte {error.start:,})") from error


def _is_our_file(workdir: str, path: str) -> bool:
    """Check whether a file of the project, no link, runs our script or belongs to what does."""
    if _is_linked(workdir, path):
        return False
    content = read_whole(os.path.join(workdir, path)) or b""
    return b"stop_hook" in content or (bool(content) and path.endswith("/plugin.json"))


def _is_linked(workdir: str, path: str) -> bool:
    return os.path.islink(os.path.join(workdir, path)) or resolve_inside(workdir, path) is None


def _remove_empty(workdir: str, folder: str) -> None:
    while folder:
        try:
            os.rmdir(os.path.join(workdir, folder))
        except OSError:
            return
        folder = os.path.dirname(folder)


# The text of a settings file: our hooks are put in and taken out, all else stays.


class NotMergeable(ValueError):
    """The file holds something else than settings; the message says what."""


def add_hooks(text: str, settings: Mapping[str, Any]) -> str:
    """Return *text* ("" for no file) with the hooks of *settings* in place of older ones."""
    before = _parse(text)
    document = _without_ours(before)
    hooks = document["hooks"] = dict(document.get("hooks", {}))
    for event, entries in settings["hooks"].items():
        hooks[event] = [*hooks.get(event, []), *entries]
    return text if document == before else _render(document, text)


def remove_hooks(text: str, others: Mapping[str, Any]) -> str:
    """Return *text* without our hooks; an empty text if nothing but *others* is left."""
    before = _parse(text)
    after = _without_ours(before)
    if after == before:
        return text
    return "" if after in ({}, others) else _render(after, text)


def _parse(text: str) -> dict[str, Any]:
    plain = text.removeprefix(_MARK)
    if not plain.strip():
        return {}
    try:
        # Strict, since a key that is there twice would be lost.
        parse_strict_json(plain)
        document = json.loads(plain)
    except BadJson as error:
        raise NotMergeable(f"is {error.message}") from error
    if not isinstance(document, dict):
        raise NotMergeable("is no JSON object")
    hooks = document.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(each, list) for each in hooks.values()):
        raise NotMergeable("has hooks of another form")
    return document


def _without_ours(document: dict[str, Any]) -> dict[str, Any]:
    hooks = document.get("hooks", {})
    kept = {event: _foreign(entries) for event, entries in hooks.items()}
    kept = {event: entries for event, entries in kept.items() if entries or not hooks[event]}
    # Empty hooks stay if they were empty before.
    if kept or not hooks:
        return {**document, "hooks": kept} if "hooks" in document else dict(document)
    return {key: value for key, value in document.items() if key != "hooks"}


def _foreign(entries: list[Any]) -> list[Any]:
    kept = []
    for entry in entries:
        if _is_ours(entry):
            continue
        if isinstance(entry, dict) and isinstance(entry.get("hooks"), list) and entry["hooks"]:
            inner = [each for each in entry["hooks"] if not _is_ours(each)]
            if inner:
                kept.append({**entry, "hooks": inner})
            continue
        kept.append(entry)
    return kept


def _is_ours(entry: Any) -> bool:
    return isinstance(entry, dict) and any(
        isinstance(value, str) and re.search(_OURS, value) for value in entry.values()
    )


def _render(document: Mapping[str, Any], like: str) -> str:
    plain = like.removeprefix(_MARK)
    indent = re.match(_INDENT, plain)
    text = json.dumps(document, indent=indent[1] if indent else _BLANKS, ensure_ascii=False)
    if plain.endswith("\n") or not plain:
        text += "\n"
    if "\r\n" in plain:
        text = text.replace("\n", "\r\n")
    return (_MARK if like.startswith(_MARK) else "") + text
