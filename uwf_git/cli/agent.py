"""`uwf agent ...`."""

from collections.abc import Callable
from typing import Any

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.agent_log import forwarded_log
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.output.screen import Painted, screen_of
from uwf_git.cli.output.table import Cell, Column, render_columns, render_text, wide_option
from uwf_git.cli.session.caller import sigterm_as_interrupt, terminal_caller
from uwf_git.cli.session.settings import Session
from uwf_git.commands.agent.check import CheckRequest, check_agent, find_trusted_settings
from uwf_git.commands.agent.trust import AgentSelection, trust, untrust
from uwf_git.commands.turn.agent_words import CONFIG_NAME
from uwf_git.commands.turn.known_agents import FoundAgent, find_agents, name_agent
from uwf_git.store.git.config import GitConfig
from uwf_git.store.git.scopes import read_user_config
from uwf_git.store.store import NotAStore
from uwf_git.store.trust import Trusted, list_trusted

DEFAULT_TIMEOUT_S = 120

timeout_option = click.option(
    "--timeout",
    type=click.IntRange(min=1),
    default=DEFAULT_TIMEOUT_S,
    metavar="SECONDS",
    help=f"The timeout.  [default: {DEFAULT_TIMEOUT_S}]",
)


@verb(
    "uwf agent check claude",
    "uwf agent check 'uwf-llm --model gpt-5'",
    exits={3: "the agent did not take the step"},
)
@click.argument("agent")
@timeout_option
def check_command(session: Session, agent: str, timeout: int) -> None:
    """Test an agent with one small step.

    AGENT is a command, or the name of an agent that `uwf agent list` knows. The step runs in a
    temporary store and an empty folder; `heard` is true if the agent received the prompt.
    """
    emit(session, run_check(session, name_agent(text_argument(agent, "the agent")), timeout))


def run_check(session: Session, agent: str, timeout_s: int) -> dict[str, Any]:
    """Run a step of *agent* with the settings of the session's store; return the document."""
    with sigterm_as_interrupt(), forwarded_log() as forward:
        request = CheckRequest(agent, timeout_s, session.new_thread_id(), *_settings(session))
        checked = check_agent(terminal_caller(session), request, on_stderr=forward)
    if not checked.heard:
        note(f"{agent} answered without the word from the prompt: did it read the prompt?")
    return {
        "agent": agent,
        "heard": checked.heard,
        "meta": checked.meta,
        "content": checked.content,
        "rung": checked.rung,
        "usage": checked.usage,
        "durationMs": checked.duration_ms,
        "promptCharacters": checked.prompt_characters,
    }


def _settings(session: Session) -> tuple[GitConfig, dict[str, str]]:
    """Return the settings of the session's store, and those of adapters that are trusted there."""
    try:
        store = session.open_store()
    except NotAStore:
        return read_user_config(session.environ), {}
    return store.config, find_trusted_settings(store, session.cwd)


_COLUMNS = (
    Column("agent", "AGENT"),
    Column("default", "DEFAULT", 2),
    Column("installed", "INSTALLED", 3),
    Column("version", "VERSION", 4, least=8),
    Column("about", "ABOUT", 1, least=20),
    Column("path", "PATH", 6, least=20),
)


@verb("uwf agent list --format text", "uwf agent list --all")
@click.option("--all", "with_all", is_flag=True, help="Also those that are not installed.")
@wide_option
def list_command(session: Session, *, with_all: bool, wide: bool) -> None:
    """List the known agents, and which are installed.

    Their programs are looked up on PATH. Any other command can be an agent as well.
    """
    default = session.agent or session.open_store(create=True).config.get(CONFIG_NAME) or ""
    found = find_agents(session.environ, with_versions=True)
    rows = [_row(each, default) for each in found if with_all or each.is_here]
    emit(session, rows, text=lambda rows: _table(session, rows, wide=wide))


def _table(session: Session, rows: list[dict[str, Any]], *, wide: bool) -> str:
    screen = screen_of(session)
    cells: list[dict[str, Cell]] = [
        {
            **row,
            "default": "yes" if row["default"] else None,
            "installed": None if row["installed"] else "no",
        }
        for row in rows
    ]
    return Painted("\n".join(render_columns(cells, _COLUMNS, screen, wide=wide)))


def _row(found: FoundAgent, default: str) -> dict[str, Any]:
    agent = found.agent
    row: dict[str, Any] = {
        "agent": agent.command,
        "default": default.split(maxsplit=1)[:1] == [agent.command],
        "installed": found.is_here,
        "version": found.version,
        "path": found.path,
    }
    told = agent.about if found.is_here else f"{agent.about}: {agent.install}"
    return {**row, "about": f"{told}: {agent.example}" if agent.example else told}


def who_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name agents to a verb: a command, a thread, a workflow."""
    with_workflow = click.option(
        "--workflow", metavar="NAME", help="The agents that this workflow names."
    )(function)
    with_thread = click.option(
        "--thread", metavar="ID", help="The agents that are bound in this thread."
    )(with_workflow)
    return click.argument("command", required=False)(with_thread)


@verb(
    "uwf agent trust 'uwf-claude --model opus'",
    "uwf agent trust --thread 01J7K9M2",
    "uwf agent trust --setting gpg.ssh.program",
    exits={1: "there is no such thread, workflow, setting or agent"},
)
@who_options
@click.option(
    "--setting", metavar="NAME", help="What this store's config has in this setting of uwf or git."
)
@click.option(
    "--stored",
    is_flag=True,
    help="The agents that an older uwf wrote into this store's config as trusted.",
)
def trust_command(
    session: Session,
    *,
    command: str | None,
    thread: str | None,
    workflow: str | None,
    setting: str | None,
    stored: bool,
) -> None:
    """Let an agent command run in this store.

    A command that came with a fetched thread or workflow, or that the store's own config names,
    does not run until it is trusted here. COMMAND alone trusts the command without further
    settings; --thread or --workflow trust its agents as they are, with their environment. Read the
    output: it is what may run.

    So it is with a setting that decides what runs, or where a key is sent (gpg.program,
    core.sshCommand, uwf.claude.args, uwf.llm.url): one of your own git config counts, one of this
    store's config only if --setting has trusted its present value.

    Relative paths in a command mean the files of the current directory (with --thread, of the
    thread's work directory). The same words elsewhere mean other files, which are not trusted.

    The list is your own: it is kept with your files, not in the store.
    """
    who = AgentSelection(_text(command), thread, workflow, session.cwd, stored, setting)
    emit(session, {"trusted": trust(session.open_store(create=True), who)})


def _text(command: str | None) -> str | None:
    return None if command is None else text_argument(command, "the command")


@verb("uwf agent trusted --format text")
def trusted_command(session: Session) -> None:
    """List the agent commands that may run here.

    Commands that were typed here are among them. A command that means files, by relative paths, may
    run where these are the same; one without may run in any directory.
    """
    rows = [trusted_row(each) for each in list_trusted(session.open_store(create=True))]
    emit(
        session,
        rows,
        text=_render_trusted,
        none="no command is trusted here; uwf agent trust CMD trusts one",
    )


def _render_trusted(rows: list[dict[str, Any]]) -> str:
    # Not a table: a command may be a whole script, and a cut one could hide its harmful part.
    return "\n".join(
        render_text({name: value for name, value in row.items() if value is not None})
        for row in rows
    )


def trusted_row(trusted: Trusted) -> dict[str, Any]:
    """Return the document of one trusted agent."""
    agent = trusted.agent or {}
    settings = {name: value for name, value in agent.items() if name != "command"}
    return {
        "command": agent.get("command", trusted.text),
        "settings": settings or None,
        "files": list(trusted.files) or None,
        "directory": trusted.directory if trusted.files else None,
        "where": "store" if trusted.is_own else "user",
    }


@verb(
    "uwf agent untrust 'uwf-claude --model opus'",
    "uwf agent untrust --thread 01J7K9M2",
    exits={1: "no such agent is trusted here"},
)
@who_options
def untrust_command(
    session: Session, command: str | None, thread: str | None, workflow: str | None
) -> None:
    """Stop trusting an agent command.

    COMMAND means every trusted agent with this command, whatever its settings and directory.
    Commands given by `--agent` or by your own default run all the same.
    """
    named = None if command is None else text_argument(command, "the command")
    who = AgentSelection(named, thread, workflow, session.cwd)
    gone = untrust(session.open_store(create=True), who)
    emit(session, {"untrusted": [trusted_row(each) for each in gone]})
