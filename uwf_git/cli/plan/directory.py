"""The work directory of `uwf plan`, its store and settings; and `uwf plan plugin`."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.session.settings import Session
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

if TYPE_CHECKING:
    from uwf_git.plan.settings import PlanSettings
    from uwf_git.store.store import Store


def directory_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``directory`` to a verb."""
    return click.option(
        "-d", "--dir", "directory", metavar="DIR", help="The work directory.  [default: this one]"
    )(function)


def find_directory(session: Session, directory: str | None) -> str:
    """Return the work directory, absolute."""
    found = os.path.normpath(os.path.join(session.cwd, directory or ""))
    if not os.path.isdir(found):
        path = directory or found
        raise BadUsage(
            f"{path} is not a directory",
            code="no-such-directory",
            hint="name that of the project with -d",
            path=path,
        )
    return found


def open_project(session: Session, workdir: str) -> "tuple[Store | None, PlanSettings]":
    """Return the store that a command in *workdir* would use, and the settings that count there.

    The store is None if there is none yet; then the settings are those of the user.
    """
    from uwf_git.plan.settings import (  # noqa: PLC0415 (60 ms that help does not need)
        load_plan_settings,
        read_plan_settings,
    )
    from uwf_git.store.git.scopes import read_user_config  # noqa: PLC0415 (as above)
    from uwf_git.store.store import NotAStore  # noqa: PLC0415 (as above)

    try:
        store = session._replace(cwd=workdir).open_store()
    except NotAStore:
        if session.repo:
            raise
        return None, read_plan_settings(read_user_config(session.environ))
    return store, load_plan_settings(store, workdir)


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
    _, settings = open_project(session, workdir)
    hook = find_hook(workdir, settings.plugin_dir)
    document: dict[str, Any] = {"plugin": hook.plugin, "written": [], "command": hook.command}
    if not uninstalls:
        from uwf_git.cli.session.installed_version import (  # noqa: PLC0415 (30 ms, for this verb alone)
            installed_version,
        )

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
    emit(session, document)
    if not uninstalls and document.get("advice"):
        note(f"note: {document['advice']}")


def _no_tool(problem: str) -> BadUsage:
    return BadUsage(problem, code="no-tool", hint="uwf plan plugin --for claude --install")
