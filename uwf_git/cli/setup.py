"""`uwf setup`."""

import os
import sys

import click

from uwf_git.cli.agent.check import run_check, timeout_option
from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.screen import emit, note
from uwf_git.cli.session import Session, write_stderr
from uwf_git.commands.admin.config import set_setting
from uwf_git.commands.turn.bind_roles import find_agents, name_agent
from uwf_git.commands.turn.next_move import CONFIG_NAME
from uwf_git.errors import BadUsage, Refused
from uwf_git.store.git.program import set_user_config
from uwf_git.store.store import NotAStore


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
def command(
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
    if not session.can_ask:
        commands = [each.agent.command for each in found]
        raise BadUsage(
            "there is no terminal to ask at",
            code="nobody-to-ask",
            hint=f"choose one: `uwf setup --agent {commands[0]}`; there are {', '.join(commands)}",
            agents=commands,
        )
    for number, each in enumerate(found, 1):
        note(f"{number}  {each.agent.command:<14} {each.agent.about} ({each.path})")
    while True:
        write_stderr("Which one is the default? [1] ")
        line = sys.stdin.readline()
        if not line:
            raise KeyboardInterrupt
        answer = line.strip() or "1"
        if answer.isdecimal() and 1 <= int(answer) <= len(found):
            return found[int(answer) - 1].agent.command
        names = [each.agent.command for each in found]
        if answer in names or f"uwf-{answer}" in names:
            return name_agent(answer)
        note(f"type a number from 1 to {len(found)}, or a name")


def _write(session: Session, agent: str, *, for_all: bool) -> str:
    if not for_all:
        store = session.open_store(create=True)
        set_setting(store, CONFIG_NAME, agent, cwd=session.cwd)
        return os.path.join(store.path, "config")
    set_user_config(session.environ, CONFIG_NAME, agent)
    _note_own_setting(session, agent)
    return "the user's git config"


def _note_own_setting(session: Session, agent: str) -> None:
    try:
        store = session.open_store()
    except NotAStore:
        return
    own = store.config.get(CONFIG_NAME)
    if own not in (None, agent):
        note(f"but the store {store.path} has a setting of its own: {own}")
