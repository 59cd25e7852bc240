"""`uwf agent check` and `uwf setup`."""

import os
from contextlib import suppress
from typing import Any

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import sigterm_as_interrupt, terminal_caller
from uwf_git.cli.output.live import forwarded_output
from uwf_git.cli.output.screen import ask, emit, note
from uwf_git.cli.session import Session
from uwf_git.commands.admin import set_setting
from uwf_git.commands.agent_check import CheckRequest, check_agent, find_trusted_settings
from uwf_git.commands.turn.choose_agent import find_agents, name_agent
from uwf_git.commands.turn.next_move import CONFIG_NAME
from uwf_git.errors import BadUsage, Refused
from uwf_git.store.git.config import GitConfig, read_user_config
from uwf_git.store.git.program import set_user_config
from uwf_git.store.store import NotAStore

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
    where = _write(session, chosen, for_all=for_all)
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
            "`uwf setup --agent CMD`",
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


def _write(session: Session, agent: str, *, for_all: bool) -> str:
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
