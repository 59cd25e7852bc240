"""`uwf mcp`."""

import click

from uwf_git.cli.mcp_serving import serve_agent
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb


@verb("uwf mcp", "claude mcp add uwf -- uwf --repo ~/store.git mcp")
@click.option("--thread", metavar="ID", help="The agent's thread.  [default: $UWF_THREAD_ID]")
@click.option("--role", metavar="ROLE", help="The agent's role.  [default: $UWF_ROLE]")
def command(session: Session, thread: str | None, role: str | None) -> None:
    """Let an agent read its thread and hand in its result.

    A server of the Model Context Protocol on standard input and output. Agents start it; `uwf-…`
    adapters tell them to. Its tools are read_thread, read_step, read_role and submit_result.
    """
    serve_agent(session, thread=thread, role=role)
