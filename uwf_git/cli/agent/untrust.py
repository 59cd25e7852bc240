"""`uwf agent untrust`."""

from uwf_git.cli.agent.trust import who_options
from uwf_git.cli.agent.trusted import trusted_row
from uwf_git.cli.parameters import text_argument
from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.agent_trust import WhoIsMeant, untrust


@verb(
    "uwf agent untrust 'uwf-claude --model opus'",
    "uwf agent untrust --thread 01J7K9M2",
    exits={1: "no such agent may run here anyway"},
)
@who_options
def command(
    session: Session, command: str | None, thread: str | None, workflow: str | None
) -> None:
    """Let an agent command run here no more.

    COMMAND means every trusted agent that has it, whatever its settings; a long one is named as
    `uwf agent trusted` shows it. What `--agent` or the default names may run all the same.
    """
    named = None if command is None else text_argument(command, "the command")
    who = WhoIsMeant(named, thread, workflow, session.cwd)
    gone = untrust(session.open_store(create=True), who)
    emit(session, {"untrusted": [trusted_row(each) for each in gone]})
