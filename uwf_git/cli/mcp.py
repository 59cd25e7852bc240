"""`uwf mcp`."""

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.mcp_serving import serve_agent
from uwf_git.cli.session.settings import Session


@verb("uwf mcp", "claude mcp add uwf -- uwf --repo ~/store.git mcp")
@click.option("--thread", metavar="ID", help="The agent's thread.  [default: $UWF_THREAD_ID]")
@click.option("--role", metavar="ROLE", help="The agent's role.  [default: $UWF_ROLE]")
def command(session: Session, thread: str | None, role: str | None) -> None:
    """Serve an agent: let it read its thread and submit its result.

    A server of the Model Context Protocol on standard input and output. Agents start it; `uwf-…`
    adapters configure them to. Its tools are read_thread, read_step, read_role and submit_result.
    """
    serve_agent(session, thread=thread, role=role)
