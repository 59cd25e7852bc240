"""The plugin folder with the stop hook, and the hooks in a project's own settings."""

import os
import sys
from typing import NamedTuple

from uwf_git.errors import Refused
from uwf_git.plan.hook_forms import (
    INSTALLED_FILES,
    INSTALLED_SETTINGS,
    StopHook,
    build_form,
    build_plugin,
)
from uwf_git.plan.hook_settings import SCRIPT, NotMergeable, add_hooks, remove_hooks
from uwf_git.plan.inside import resolve_inside
from uwf_git.plan.whole_file import keep_out_of_git, read_whole, replace_if_changed

PLUGIN_DIR = ".plugins"

_EXECUTABLE = 0o755


def _settings_refused(path: str, problem: str) -> Refused:
    return Refused(
        f"{path} {problem}; nothing was changed",
        code="settings-refused",
        hint="put the hook in by hand: `uwf plan plugin --for TOOL` prints it",
        path=path,
    )


class Plugin(NamedTuple):
    """Where the plugin of a project is."""

    folder: str
    """Its path, absolute."""

    hook: StopHook


def find_plugin(workdir: str, *, plugin_dir: str = PLUGIN_DIR, python: str = "") -> Plugin:
    """Return where the plugin of *workdir* is, or has to be; *python* is by default this one.

    Raises:
        Refused: *plugin_dir* is not below *workdir*, or a link in it leads out of that.
    """
    above = os.path.join(os.path.abspath(workdir), plugin_dir)
    script = os.path.join(above, *SCRIPT)
    plugin = Plugin(os.path.join(above, SCRIPT[0]), StopHook(python or sys.executable, script))
    for name in (*build_plugin(plugin.hook, ""), "/".join(SCRIPT[1:])):
        if resolve_inside(workdir, os.path.join(plugin.folder, name)) is None:
            raise _settings_refused(plugin.folder, "leads out of the work directory")
    return plugin


def write_plugin(plugin: Plugin, version: str, *, state_file: str) -> list[str]:
    """Write the files of the plugin that are missing or differ; return their paths.

    *state_file* is the path, absolute, of the file that the hook reads.

    Raises:
        OSError: the system refused.
    """
    contents = build_plugin(plugin.hook, version)
    place = os.path.relpath(state_file, os.path.dirname(plugin.hook.script)).replace(os.sep, "/")
    contents["/".join(SCRIPT[1:])] = render_stop_hook(place)
    keep_out_of_git(os.path.dirname(plugin.folder))
    written = []
    for name, text in contents.items():
        path = os.path.join(plugin.folder, *name.split("/"))
        if replace_if_changed(path, text.encode()):
            written.append(path)
    os.chmod(plugin.hook.script, _EXECUTABLE)
    return written


def render_stop_hook(state_file: str) -> str:
    """Return the text of the hook; *state_file* is the path from its folder."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stop_hook.py")
    with open(source, encoding="utf-8") as file:
        lines = file.read().splitlines(keepends=True)
    (place,) = (n for n, line in enumerate(lines) if line.startswith("STATE_FILE = "))
    lines[place] = f"STATE_FILE = {state_file!r}\n"
    return "".join(["#!/usr/bin/env python3\n", *lines])


def install_hooks(workdir: str, tool: str, plugin: Plugin) -> list[str]:
    """Put the hook of *tool* into the project's settings; return the paths that changed.

    Raises:
        Refused: a file holds something that would be lost; nothing was changed.
        OSError: the system refused.
    """
    contents = {}
    for path, settings in build_form(tool, plugin.hook).settings.items():
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

    A file in which nothing is left is removed, and so is its folder if it is empty.

    Raises:
        Refused: a file with a hook cannot be read as settings; nothing was changed.
        OSError: the system refused.
    """
    after = {path: "" for path in INSTALLED_FILES if _is_ours(workdir, path)}
    for path, others in INSTALLED_SETTINGS.items():
        # What is behind a link, or has no hook of ours, was never ours.
        if not _is_ours(workdir, path):
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


def _read_settings(workdir: str, path: str) -> str:
    if _is_linked(workdir, path):
        # It may be the file of all projects, and a replaced link is lost.
        raise _settings_refused(path, "is a link, or lies behind one")
    try:
        return (read_whole(os.path.join(workdir, path)) or b"").decode()
    except UnicodeDecodeError as error:
        raise _settings_refused(path, f"is not UTF-8 (byte {error.start:,})") from error


def _is_ours(workdir: str, path: str) -> bool:
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
