"""`uwf agent check`."""

from typing import Any

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import sigterm_as_interrupt, terminal_caller
from uwf_git.cli.output.agent_log import forwarded_output
from uwf_git.cli.output.screen import emit, note
from uwf_git.cli.session import Session
from uwf_git.commands.agent.check import CheckRequest, check_agent, find_trusted_settings
from uwf_git.commands.turn.bind_roles import name_agent
from uwf_git.store.git.config import GitConfig, read_user_config
from uwf_git.store.store import NotAStore

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
