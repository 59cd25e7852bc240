"""`uwf agent ...`, and `uwf setup`."""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import click

from uwf_git.cli.app.parameters import text_argument, with_options
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import sigterm_as_interrupt, terminal_caller
from uwf_git.cli.output.live import forwarded_output
from uwf_git.cli.output.screen import (
    Cell,
    Column,
    ask,
    emit,
    note,
    paint_columns,
    render_text,
    screen_of,
    wide_option,
    without_none,
)
from uwf_git.cli.session import Session
from uwf_git.commands.admin import set_setting
from uwf_git.commands.agent import (
    AgentSelection,
    CheckRequest,
    check_agent,
    find_trusted_settings,
    trust,
    untrust,
)
from uwf_git.commands.turn.choose_agent import FoundAgent, find_agents, name_agent
from uwf_git.commands.turn.next_move import CONFIG_NAME
from uwf_git.errors import BadUsage, Refused
from uwf_git.store.git.config import GitConfig, read_user_config
from uwf_git.store.git.program import set_user_config
from uwf_git.store.store import NotAStore
from uwf_git.store.trust import Trusted, list_trusted

# `uwf agent trust`, `untrust` and `trusted`.


def _read_command(given: dict[str, Any]) -> None:
    if given["command"] is not None:
        text_argument(given["command"], "the command")


who_options = with_options(
    _read_command,
    click.argument("command", required=False),
    click.option("--thread", metavar="ID", help="All agents and checks of this thread."),
    click.option("--workflow", metavar="NAME", help="All agents and checks of this workflow."),
)
"""Add the options that name agents to a verb: a command, a thread, a workflow."""


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

    Settings that decide what runs, or where a key is sent (gpg.program, core.sshCommand,
    uwf.claude.args, uwf.llm.url), need trust as well. A setting in your own git config counts; a
    setting in this store's config counts only if --setting has trusted its present value.

    Relative paths in a command mean the files of the current directory (with --thread, of the
    thread's work directory, if it has one here). The same words elsewhere mean other files, which
    are not trusted.

    The list is your own: it is kept with your files, not in the store.
    """
    who = AgentSelection(command, thread, workflow, session.cwd, stored, setting)
    emit(session, {"trusted": trust(session.open_store(create=True), who)})


@verb("uwf agent trusted --format text")
def trusted_command(session: Session) -> None:
    """List the agent commands that may run here.

    Commands that were typed here are among them. A command with relative paths may run only in
    directories where they mean the same files; any other command may run in any directory.
    """
    emit(
        session,
        _view_trusted(list_trusted(session.open_store(create=True))),
        # Not a table: a command may be a whole script, and a cut one could hide its harmful part.
        text=lambda rows: "\n".join(render_text(without_none(row)) for row in rows),
        none="no command is trusted here; `uwf agent trust CMD` trusts one",
    )


def _view_trusted(trusted: Iterable[Trusted]) -> list[dict[str, Any]]:
    """Return the document of each trusted agent; one for all directories if it means no files."""
    rows = [_trusted_row(each) for each in trusted]
    return [row for at, row in enumerate(rows) if row not in rows[:at]]


def _trusted_row(trusted: Trusted) -> dict[str, Any]:
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
    who = AgentSelection(command, thread, workflow, session.cwd)
    gone = untrust(session.open_store(create=True), who)
    emit(session, {"untrusted": _view_trusted(gone)})


# `uwf agent list`.

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
    cells: list[dict[str, Cell]] = [
        {
            **row,
            "default": "yes" if row["default"] else None,
            "installed": "yes" if row["installed"] else "no",
        }
        for row in rows
    ]
    return paint_columns(cells, _COLUMNS, screen_of(session), wide=wide)


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


# `uwf agent check`.

DEFAULT_TIMEOUT_S = 120

timeout_option = click.option(
    "--timeout",
    type=click.IntRange(min=1),
    default=DEFAULT_TIMEOUT_S,
    metavar="SECONDS",
    help=f"The most seconds that the step may take.  [default: {DEFAULT_TIMEOUT_S}]",
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
    with sigterm_as_interrupt(), forwarded_output() as forward:
        request = CheckRequest(agent, timeout_s, session.new_thread_id(), *_settings(session))
        checked = check_agent(terminal_caller(session), request, on_stderr=forward.stderr)
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
    try:
        store = session.open_store()
    except NotAStore:
        return read_user_config(session.environ), {}
    return store.config, find_trusted_settings(store, session.cwd)


# `uwf setup`.


@verb(
    "uwf setup",
    "uwf setup --agent claude --global",
    "uwf setup --agent 'uwf-llm --model gpt-5' --no-check",
    exits={3: "the agent did not take the step of the check; nothing was changed"},
)
@click.option("--agent", metavar="NAME", help="The agent: a name or a command, without asking.")
@click.option("--global", "for_all", is_flag=True, help="Set the agent for all your stores.")
@click.option("--check/--no-check", default=True, help="Let the agent take a small step first.")
@timeout_option
def setup_command(
    session: Session,
    *,
    agent: str | None,
    for_all: bool,
    check: bool,
    timeout: int,
) -> None:
    """Find the agents of this machine and choose one.

    The chosen agent plays every role that has no other agent. It is the setting `uwf.agent` in git
    config; before it is written the agent takes one small step in a temporary store, as `uwf agent
    check` does.
    """
    chosen = _choose(session) if agent is None else name_agent(text_argument(agent, "--agent"))
    checked = run_check(session, chosen, timeout) if check else None
    where = _write_setting(session, chosen, for_all=for_all)
    note(f"{chosen} plays every role that has no other agent ({where})")
    if session.agent not in (None, chosen):
        note(f"but UWF_AGENT is set and takes precedence: {session.agent}")
    note("next: uwf run WORKFLOW -p '…'")
    emit(session, {"setting": CONFIG_NAME, "value": chosen, "where": where, "check": checked})


def _choose(session: Session) -> str:
    found = [
        each for each in find_agents(session.environ, with_versions=False) if each.path is not None
    ]
    if not found:
        raise Refused(
            "no agent program was found on the PATH",
            code="no-agent-here",
            hint="`uwf agent list --all` says how to get one; any command will do: "
            "`uwf setup --agent CMD` (untried with `--no-check`)",
        )
    commands = [each.agent.command for each in found]
    if not session.can_ask:
        raise BadUsage(
            "there is no terminal to ask at",
            code="nobody-to-ask",
            hint=f"choose one: `uwf setup --agent {commands[0]}`; there are {', '.join(commands)}",
            agents=commands,
        )
    for number, each in enumerate(found, 1):
        note(f"{number}  {each.agent.command:<14} {each.agent.about} ({each.path})")
    while True:
        answer = ask("Which one is the default? [1] ") or "1"
        if answer.isdecimal() and 1 <= int(answer) <= len(found):
            return commands[int(answer) - 1]
        if answer in commands or f"uwf-{answer}" in commands:
            return name_agent(answer)
        note(f"type a number from 1 to {len(found)}, or a name")


def _write_setting(session: Session, agent: str, *, for_all: bool) -> str:
    if not for_all:
        store = session.open_store(create=True)
        set_setting(store, CONFIG_NAME, agent, cwd=session.cwd)
        return os.path.join(store.path, "config")
    set_user_config(session.environ, CONFIG_NAME, agent)
    with suppress(NotAStore):
        store = session.open_store()
        own = store.config.get(CONFIG_NAME)
        if own not in (None, agent):
            note(f"but the store {store.path} has a setting of its own: {own}")
    return "the user's git config"
