"""`uwf plan status`, `plans`, `clean` and `plugin`."""

import os
from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.output.table import render_text
from uwf_git.cli.plan.carry_out import (
    directory_option,
    find_directory,
    find_store_of,
    read_settings_of,
)
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.installed_version import installed_version
from uwf_git.cli.session.settings import Session
from uwf_git.commands.plan.plans import clean_plans, read_plan_rows, read_plan_status
from uwf_git.errors import BadUsage
from uwf_git.plan.hook_forms import TOOLS, build_form, list_run_words
from uwf_git.plan.plugin import Plugin, find_plugin, install_hooks, uninstall_hooks, write_plugin


@verb("uwf plan status", "uwf plan status -d ~/shop --format text")
@directory_option
def status_command(session: Session, directory: str | None) -> None:
    """Show where the plans of a directory stand.

    The phase is idle, planning, executing, completed, failed or waiting_human. The document is that
    of .state/workflow.state.json, which comes back if it was deleted.
    """
    workdir = find_directory(session, directory)
    store = find_store_of(session, workdir)
    emit(session, read_plan_status(store, workdir, read_settings_of(session, store, workdir)))


@verb("uwf plan plans", "uwf plan plans -d ~/shop --format text")
@directory_option
def plans_command(session: Session, directory: str | None) -> None:
    """List the plan files of a directory, with their status.

    They are docs/plans/NNN-name.md, or lie where uwf.plan.planDir says. A status is pending,
    executing, completed or failed. A plan that nobody carries out has `tracked` false; one whose
    file is gone has `missing` true.
    """
    workdir = find_directory(session, directory)
    store = find_store_of(session, workdir)
    rows = read_plan_rows(store, workdir, read_settings_of(session, store, workdir))
    width = session.text_width()
    emit(session, rows, text=lambda rows: render_text(list(map(_shown, rows)), width=width))


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    status = row["status"]
    status += ", missing" if row.get("missing") else ""
    status += ", not tracked" if row.get("tracked") is False else ""
    return {"number": row["number"], "name": row["name"], "status": status, "file": row["file"]}


@verb(
    "uwf plan clean",
    "uwf plan clean --all -d ~/shop",
    exits={1: "a folder is behind a link", 4: "an agent is at work"},
)
@directory_option
@click.option("--all", "with_plans", is_flag=True, help="Also remove the plan files.")
def clean_command(session: Session, directory: str | None, *, with_plans: bool) -> None:
    """End the unfinished thread of a directory, and remove its state files.

    The history of the thread stays. No link is followed, and nothing else is removed: not the work,
    and not the session logs.
    """
    workdir = find_directory(session, directory)
    store = find_store_of(session, workdir)
    settings = read_settings_of(session, store, workdir)
    cleaned = clean_plans(store, caller_of(session), workdir, settings, with_plans=with_plans)
    emit(session, {"ended": cleaned.ended, "removed": cleaned.removed})


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
