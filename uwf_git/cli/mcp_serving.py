"""Serving `uwf mcp`: read one line from an agent's program, write its answer.

Each turn of an agent starts a server, and click would be half of that start. So adapters call
`python -m uwf_git mcp`, which does the same as `uwf mcp` without options.
"""

import os
import sys
from collections.abc import Iterator
from typing import NoReturn

from uwf_git.cli.app.guard import run_guarded
from uwf_git.cli.session import Session, leave, read_session, write_stderr, write_stdout
from uwf_git.commands.mcp.server import McpPlace, build_server
from uwf_git.surroundings import speak_utf8

# More than any client sends in one message.
_MOST_BYTES = 64 * 1024 * 1024


def program() -> NoReturn:
    """Run `uwf mcp` as the whole process."""
    speak_utf8()
    environ = dict(os.environ)

    def serve() -> int:
        serve_agent(read_session(environ))
        return 0

    leave(run_guarded(serve, environ=environ, as_json=lambda: False))


def serve_agent(session: Session, *, thread: str | None = None, role: str | None = None) -> None:
    """Answer an agent until it closes the stream; what is None comes from the environment."""
    environ = session.environ
    place = McpPlace(
        session.open_store,
        thread=thread or environ.get("UWF_THREAD_ID") or None,
        role=role or environ.get("UWF_ROLE") or None,
        head=environ.get("UWF_HEAD") or None,
        step_dir=environ.get("UWF_STEP_DIR") or None,
    )
    server = build_server(place)
    for line in read_lines(session):
        if (reply := server.answer_line(line)) is not None:
            write_stdout(reply.decode("ascii"))


def read_lines(session: Session) -> Iterator[bytes]:
    """Yield what a program sends, line by line, until the end of the stream."""
    if session.stdin_is_tty:
        write_stderr("this is a server for agents, which send it JSON; Ctrl-D ends it\n")
    while sys.stdin is not None and (line := sys.stdin.buffer.readline(_MOST_BYTES)):
        if line.strip():
            yield line
