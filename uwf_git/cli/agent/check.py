"""`uwf agent check`."""

from typing import Any

import click

from uwf_git.cli.agent_log import forwarded_log
from uwf_git.cli.asked_to_end import taken_as_interrupt
from uwf_git.cli.parameters import text_argument
from uwf_git.cli.render import emit, note
from uwf_git.cli.settings import Session
from uwf_git.cli.terminal_caller import terminal_caller
from uwf_git.cli.verb import verb
from uwf_git.commands.agent_check import CheckRequest, check_agent
from uwf_git.commands.known_agents import name_agent
from uwf_git.store.git_config import GitConfig, read_user_config
from uwf_git.store.store import NotAStore

DEFAULT_TIMEOUT_S = 120

timeout_option = click.option(
    "--timeout",
    type=click.IntRange(min=1),
    default=DEFAULT_TIMEOUT_S,
    metavar="SECONDS",
    help=f"How long it may take.  [default: {DEFAULT_TIMEOUT_S}]",
)


@verb(
    "uwf agent check claude",
    "uwf agent check 'uwf-llm --model gpt-5'",
    exits={3: "the agent took no step"},
)
@click.argument("agent")
@timeout_option
def command(session: Session, agent: str, timeout: int) -> None:
    """Let an agent take one small step, and tell how.

    AGENT is a command, or the name of an agent that `uwf agent list` knows. The step is taken in
    a temporary store and an empty folder; `heard` says whether the prompt has reached it.
    """
    emit(session, run_check(session, name_agent(text_argument(agent, "the agent")), timeout))


def run_check(session: Session, agent: str, timeout_s: int) -> dict[str, Any]:
    """Let *agent* take a step with the settings of the session's store; give what is told of it.

    Raises:
        As ``check_agent``.
    """
    with taken_as_interrupt(), forwarded_log() as forward:
        request = CheckRequest(agent, timeout_s, session.new_thread_id(), _settings(session))
        checked = check_agent(terminal_caller(session), request, on_stderr=forward)
    if not checked.heard:
        note(f"{agent} answered, but not with the word that it was told: did it read its prompt?")
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


def _settings(session: Session) -> GitConfig:
    try:
        return session.open_store().config
    except NotAStore:
        return read_user_config(session.environ)
