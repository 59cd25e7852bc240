"""Serving `uwf mcp`: one line from an agent's program in, its answer out.

Owns: standard input and output while it serves, and the short way in.
Knows nothing of: click, the protocol, the tools.
Always true: the short way (`python -m uwf_git mcp`, which adapters write down for the programs
they start) does what the long one does without options. Each turn of an agent starts a server, and
click would be half of its start.
"""

import os
import sys
from typing import IO, NoReturn

from uwf_git.cli.guard import run_guarded
from uwf_git.cli.settings import Session, read_session
from uwf_git.cli.streams import leave, write_stdout
from uwf_git.commands.mcp_place import McpPlace
from uwf_git.commands.mcp_server import McpServer
from uwf_git.commands.mcp_tools import build_server

# Far more than any client sends in one message.
_MOST_BYTES = 64 * 1024 * 1024


def program() -> NoReturn:
    """Be the process `uwf mcp`."""
    environ = dict(os.environ)
    leave(run_guarded(lambda: _main(read_session(environ)), environ=environ, as_json=lambda: False))


def serve_agent(session: Session, *, thread: str | None = None, role: str | None = None) -> None:
    """Answer an agent until it has no more to ask; what is not told comes from the environment.

    Raises:
        ReaderGone, OutputFailed: nobody takes the answers.
    """
    environ = session.environ
    if session.stdin_is_tty:
        from uwf_git.cli.render import note  # noqa: PLC0415 (agents are no terminals)

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


def _main(session: Session) -> int:
    serve_agent(session)
    return 0


def _serve(server: McpServer, lines: IO[bytes]) -> None:
    """Answer every line, until there are no more."""
    while line := lines.readline(_MOST_BYTES):
        if not line.strip():
            continue
        reply = server.answer_line(line)
        if reply is not None:
            write_stdout(reply.decode("ascii"))
