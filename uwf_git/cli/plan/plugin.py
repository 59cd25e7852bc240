"""`uwf plan plugin`."""

import os
from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.plan.directory import (
    directory_option,
    find_directory,
    find_store_of,
    read_settings_of,
)
from uwf_git.cli.session.installed_version import installed_version
from uwf_git.cli.session.settings import Session
from uwf_git.errors import BadUsage
from uwf_git.plan.hook_forms import TOOLS, build_form, list_run_words
from uwf_git.plan.plugin import Plugin, find_plugin, install_hooks, uninstall_hooks, write_plugin


def _no_tool(problem: str) -> BadUsage:
    return BadUsage(problem, code="no-tool", hint="uwf plan plugin --for claude --install")


@verb(
    "uwf plan plugin",
    "uwf plan plugin --for codex",
    "uwf plan plugin --for claude --install",
    exits={1: "a settings file would lose something"},
)
@directory_option
@click.option("--for", "tool", type=click.Choice(TOOLS), help="Show the form of this AI tool.")
@click.option("--install", "installs", is_flag=True, help="Put it into the project's settings.")
@click.option("--uninstall", "uninstalls", is_flag=True, help="Take it out of them.")
def plugin_command(
    session: Session,
    directory: str | None,
    *,
    tool: str | None,
    installs: bool,
    uninstalls: bool,
) -> None:
    """Write the plugin by which an AI tool tells that it has stopped.

    It goes into .plugins/workflow of the work directory, and is one of claude and copilot. With
    --for the form of a tool is shown: `run` has the words for one run of it, `settings` is what
    --install merges into files of the project; any `other` tool may run `command` when it has
    stopped. All else in these files stays. They name paths of this machine, so they are not for
    git. --uninstall takes out what any version has installed. A run of `uwf plan` gives the hook
    to claude, copilot and codex itself.
    """
    if installs and tool is None:
        raise _no_tool("which tool? --for was not given")
    if installs and uninstalls:
        raise _no_tool("--install and --uninstall exclude each other")
    workdir = find_directory(session, directory)
    version = installed_version()
    settings = read_settings_of(session, find_store_of(session, workdir), workdir)
    plugin = find_plugin(workdir, plugin_dir=settings.plugin_dir)
    document: dict[str, Any] = {"plugin": plugin.folder, "written": []}
    document["command"] = plugin.hook.command
    if not uninstalls:
        state_file = os.path.join(workdir, settings.state_file)
        written = write_plugin(plugin, version, state_file=state_file)
        document["written"] = [os.path.relpath(path, workdir) for path in written]
    if tool is not None:
        document |= _describe(tool, plugin)
    if uninstalls:
        document["changed"] = uninstall_hooks(workdir)
    elif installs and tool is not None:
        document["changed"] = install_hooks(workdir, tool, plugin)
    emit(session, document)
    if not uninstalls and document.get("advice"):
        note(f"note: {document['advice']}")


def _describe(tool: str, plugin: Plugin) -> dict[str, Any]:
    form = build_form(tool, plugin.hook)
    return {
        "tool": tool,
        "run": list_run_words(tool, plugin.hook, plugin.folder),
        "settings": dict(form.settings),
        "advice": form.advice or None,
    }
