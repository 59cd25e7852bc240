"""`uwf agent trust`."""

from collections.abc import Callable
from typing import Any

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.commands.agent.trust import AgentSelection, trust


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
def command(
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
