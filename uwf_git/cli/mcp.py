"""`uwf mcp`."""

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.mcp_serving import serve_agent, serve_chat
from uwf_git.cli.session import Session


@verb(
    "uwf mcp",
    "claude mcp add uwf -- uwf --repo ~/store.git mcp",
    "claude mcp add uwf -- uwf mcp --workflows",
)
@click.option("--thread", metavar="ID", help="The agent's thread.  [default: $UWF_THREAD_ID]")
@click.option("--role", metavar="ROLE", help="The agent's role.  [default: $UWF_ROLE]")
@click.option("--workflows", is_flag=True, help="Serve a chat instead: it starts workflows.")
def command(session: Session, thread: str | None, role: str | None, *, workflows: bool) -> None:
    """Serve an agent: let it read its thread and submit its result.

    A server of the Model Context Protocol on standard input and output. Agents start it; `uwf-…`
    adapters configure them to. Its tools are read_thread, read_step, read_role and submit_result.

    With `--workflows` the server is for a person's chat: it lists workflows, starts threads in this
    directory, waits for them, reads and steers them. What it starts outlives it.
    """
    if workflows and (thread is not None or role is not None):
        raise click.UsageError("--thread and --role are an agent's, and --workflows serves a chat")
    if workflows:
        serve_chat(session)
    else:
        serve_agent(session, thread=thread, role=role)
