"""`uwf mcp`."""

import sys
from typing import IO

import click

from uwf_git.cli.render import note
from uwf_git.cli.settings import Session
from uwf_git.cli.streams import write_stdout
from uwf_git.cli.verb import verb
from uwf_git.commands.mcp_place import McpPlace
from uwf_git.commands.mcp_server import McpServer
from uwf_git.commands.mcp_tools import build_server

# Far more than any client sends in one message.
_MOST_BYTES = 64 * 1024 * 1024


@verb("uwf mcp", "claude mcp add uwf -- uwf --repo ~/store.git mcp")
@click.option("--thread", metavar="ID", help="The agent's thread.  [default: $UWF_THREAD_ID]")
@click.option("--role", metavar="ROLE", help="The agent's role.  [default: $UWF_ROLE]")
def command(session: Session, thread: str | None, role: str | None) -> None:
    """Let an agent read its thread and hand in its result.

    A server of the Model Context Protocol on standard input and output. Agents start it; `uwf-…`
    adapters tell them to. Its tools are read_thread, read_step, read_role and submit_result.
    """
    environ = session.environ
    if session.stdin_is_tty:
        note("this is a server for agents, which speak JSON to it; Ctrl-D ends it")
    place = McpPlace(
        session.open_store,
        thread=thread or environ.get("UWF_THREAD_ID") or None,
        role=role or environ.get("UWF_ROLE") or None,
        head=environ.get("UWF_HEAD") or None,
        step_dir=environ.get("UWF_STEP_DIR") or None,
    )
    if sys.stdin is not None:
        _serve(build_server(place), sys.stdin.buffer)


def _serve(server: McpServer, lines: IO[bytes]) -> None:
    """Answer every line, until there are no more."""
    while line := lines.readline(_MOST_BYTES):
        if not line.strip():
            continue
        reply = server.answer_line(line)
        if reply is not None:
            write_stdout(reply.decode("ascii"))
