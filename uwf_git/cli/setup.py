"""`uwf setup`."""

import os
import sys

import click

from uwf_git.cli.agent.check import run_check, timeout_option
from uwf_git.cli.parameters import text_argument
from uwf_git.cli.render import emit, note
from uwf_git.cli.settings import Session
from uwf_git.cli.streams import write_stderr
from uwf_git.cli.verb import verb
from uwf_git.commands.choose_agent import CONFIG_NAME
from uwf_git.commands.config_settings import set_setting
from uwf_git.commands.known_agents import FoundAgent, find_agents, name_agent
from uwf_git.errors import BadUsage, Refused
from uwf_git.store.store import NotAStore
from uwf_git.store.user_config import set_user_config


class NoAgentHere(Refused):
    """None of the programs that uwf knows is on this machine."""

    code = "no-agent-here"

    def __init__(self) -> None:
        super().__init__(
            "no agent program was found on the PATH",
            hint="`uwf agent list --all` says how to get one; any command will do: "
            "`uwf setup --agent CMD`",
        )


class NobodyToAsk(BadUsage):
    """There is a choice, and no terminal at which somebody could make it."""

    code = "nobody-to-ask"

    def __init__(self, found: list[FoundAgent]) -> None:
        commands = [each.agent.command for each in found]
        super().__init__(
            "there is no terminal to ask at",
            hint=f"choose one: `uwf setup --agent {commands[0]}`; there are {', '.join(commands)}",
            agents=commands,
        )


@verb(
    "uwf setup",
    "uwf setup --agent claude --global",
    "uwf setup --agent 'uwf-llm --model gpt-5' --no-check",
    exits={3: "the agent took no step in the check; nothing was changed"},
)
@click.option("--agent", metavar="NAME", help="The agent: a name or a command; nobody is asked.")
@click.option("--global", "for_all", is_flag=True, help="For all your stores, not for this one.")
@click.option("--check/--no-check", default=True, help="Let it take one small step first.")
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

    The one that is chosen plays every role for which nobody named another. It is the setting
    `uwf.agent` in git config; before it is set the agent takes one small step in a temporary
    store, as `uwf agent check` does.
    """
    chosen = _choose(session) if agent is None else name_agent(text_argument(agent, "--agent"))
    checked = run_check(session, chosen, timeout) if check else None
    where = _write(session, chosen, for_all=for_all)
    note(f"{chosen} plays every role for which nobody named another ({where})")
    if session.agent not in (None, chosen):
        note(f"but UWF_AGENT is set, and comes first: {session.agent}")
    note("next: uwf run WORKFLOW -p '…'")
    emit(session, {"setting": CONFIG_NAME, "value": chosen, "where": where, "check": checked})


def _choose(session: Session) -> str:
    """Ask which agent it shall be."""
    found = [
        each for each in find_agents(session.environ, with_versions=False) if each.path is not None
    ]
    if not found:
        raise NoAgentHere
    if not (session.stdin_is_tty and session.stderr_is_tty):
        raise NobodyToAsk(found)
    for number, each in enumerate(found, 1):
        note(f"{number}  {each.agent.command:<14} {each.agent.about} ({each.path})")
    while True:
        write_stderr("Which one shall be the default? [1] ")
        line = sys.stdin.readline()
        if not line:
            raise KeyboardInterrupt
        answer = line.strip() or "1"
        if answer.isdecimal() and 1 <= int(answer) <= len(found):
            return found[int(answer) - 1].agent.command
        names = [each.agent.command for each in found]
        if answer in names or f"uwf-{answer}" in names:
            return name_agent(answer)
        note(f"a number from 1 to {len(found)}, please, or a name")


def _write(session: Session, agent: str, *, for_all: bool) -> str:
    """Write the setting, and give where."""
    if not for_all:
        store = session.open_store(create=True)
        set_setting(store, CONFIG_NAME, agent)
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
