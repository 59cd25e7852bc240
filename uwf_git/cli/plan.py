"""The work directory of `uwf plan`, its store and settings; and `uwf plan plugin`."""

import os
from typing import TYPE_CHECKING, Any

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import caller_of
from uwf_git.cli.output.screen import emit, note, render_json, render_text
from uwf_git.cli.session import Session, installed_version
from uwf_git.commands.plan import clean_plans, read_plan_rows, read_plan_status
from uwf_git.errors import BadUsage
from uwf_git.plan.hooks import (
    TOOLS,
    advise,
    build_settings,
    find_hook,
    install_hook,
    list_run_words,
    uninstall_hooks,
    write_plugin,
)
from uwf_git.plan.settings import load_plan_settings, read_plan_settings
from uwf_git.store.git.config import read_user_config
from uwf_git.store.store import NotAStore

if TYPE_CHECKING:
    from uwf_git.plan.settings import PlanSettings
    from uwf_git.store.store import Store


directory_option = click.option(
    "-d", "--dir", "directory", metavar="DIR", help="The work directory.  [default: this one]"
)


def find_directory(session: Session, directory: str | None) -> str:
    """Return the work directory, absolute; files name it, so its path is text."""
    found = os.path.normpath(os.path.join(session.cwd, directory or ""))
    text_argument(found, "the path of the directory")
    if not os.path.isdir(found):
        path = directory or found
        raise BadUsage(
            f"{path} is not a directory",
            code="no-such-directory",
            hint="name that of the project with -d",
            path=path,
        )
    return found


def open_project(
    session: Session, directory: str | None
) -> "tuple[str, Store | None, PlanSettings]":
    """Return the work directory, the store that a command in it would use, and its settings.

    The store is None if there is none yet; then the settings are those of the user.
    """
    workdir = find_directory(session, directory)
    try:
        store = session._replace(cwd=workdir).open_store()
    except NotAStore:
        if session.repo:
            raise
        return workdir, None, read_plan_settings(read_user_config(session.environ))
    return workdir, store, load_plan_settings(store, workdir)


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

    The plugin goes into .plugins/workflow of the work directory, and serves claude and copilot.
    With --for its form for one tool is printed: `run` has the words for one run of the tool,
    `settings` is what --install merges into files of the project; any `other` tool may run
    `command` when it has stopped. Everything else in these files stays. The written files name
    paths of this machine, so keep them out of git. --uninstall removes what any version has
    installed. A run of `uwf plan` gives the hook to claude, copilot and codex itself.
    """
    if installs and tool is None:
        raise _no_tool("which tool? --for was not given")
    if installs and uninstalls:
        raise _no_tool("--install and --uninstall exclude each other")
    workdir, _, settings = open_project(session, directory)
    hook = find_hook(workdir, settings.plugin_dir)
    document: dict[str, Any] = {"plugin": hook.plugin, "written": [], "command": hook.command}
    if not uninstalls:
        state_file = os.path.join(workdir, settings.state_file)
        written = write_plugin(hook, installed_version(), state_file=state_file)
        document["written"] = [os.path.relpath(path, workdir) for path in written]
    if tool is not None:
        document |= {
            "tool": tool,
            "run": list_run_words(tool, hook),
            "settings": build_settings(tool, hook),
            "advice": advise(tool, hook),
        }
    if uninstalls:
        document["changed"] = uninstall_hooks(workdir)
    elif installs and tool is not None:
        document["changed"] = install_hook(workdir, tool, hook)
    as_text = dict(document)
    if document.get("settings"):
        # They are to be copied.
        as_text["settings"] = render_json(document["settings"], pretty=True)
    emit(session, document, text=lambda _document: render_text(as_text))
    if not uninstalls and document.get("advice"):
        note(f"note: {document['advice']}")


def _no_tool(problem: str) -> BadUsage:
    return BadUsage(problem, code="no-tool", hint="uwf plan plugin --for claude --install")


# `uwf plan status`, `uwf plan plans` and `uwf plan clean`.


@verb("uwf plan status", "uwf plan status -d ~/shop --format text")
@directory_option
def status_command(session: Session, directory: str | None) -> None:
    """Show where the plans of a directory stand.

    The phase is idle, planning, executing, completed, failed or waiting_human. The document is that
    of .state/workflow.state.json, which is written again if it was deleted while plans are
    unfinished. `driver` is the id of the process that drives them; `driver` and `port` are null
    while there is none. `limit` says that the thread is at a limit, if it is.
    """
    workdir, store, settings = open_project(session, directory)
    emit(session, read_plan_status(store, workdir, settings))


@verb("uwf plan plans", "uwf plan plans -d ~/shop --format text")
@directory_option
def plans_command(session: Session, directory: str | None) -> None:
    """List the plan files of a directory, with their status.

    They are docs/plans/NNN-name.md, or lie where uwf.plan.planDir says. A status is pending,
    executing, completed or failed. A plan that nobody carries out has `tracked` false; one whose
    file is gone has `missing` true.
    """
    workdir, store, settings = open_project(session, directory)
    rows, misnamed = read_plan_rows(store, workdir, settings)
    width = session.text_width()
    emit(session, rows, text=lambda rows: render_text(list(map(_shown, rows)), width=width))
    for each in misnamed:
        note(f"warning: {each}")


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
    workdir, store, settings = open_project(session, directory)
    caller = caller_of(session)
    emit(session, clean_plans(store, caller, workdir, settings, with_plans=with_plans))
