"""`uwf agent untrust`."""

from uwf_git.cli.agent.trust import who_options
from uwf_git.cli.agent.trusted import trusted_row
from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.commands.agent.trust import AgentSelection, untrust


@verb(
    "uwf agent untrust 'uwf-claude --model opus'",
    "uwf agent untrust --thread 01J7K9M2",
    exits={1: "no such agent is trusted here"},
)
@who_options
def command(
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
