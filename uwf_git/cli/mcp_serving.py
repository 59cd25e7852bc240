"""Serving `uwf mcp`: read one line from an agent's program, write its answer.

Each turn of an agent starts a server, and click would be half of that start. So adapters call
`python -m uwf_git mcp`, which does the same as `uwf mcp` without options.
"""

import os
import sys
from typing import NoReturn

from uwf_git.cli.app.guard import run_guarded
from uwf_git.cli.session import Session, leave, read_session, write_stdout
from uwf_git.commands.mcp.server import McpPlace, McpServer, build_server

# More than any client sends in one message.
_MOST_BYTES = 64 * 1024 * 1024


def program() -> NoReturn:
    """Run `uwf mcp` as the whole process."""
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
    _serve(session, build_server(place))


def serve_chat(session: Session) -> None:
    """Answer a person's chat program until it closes the stream."""
    from uwf_git.cli.caller import caller_of  # noqa: PLC0415 (imports the store)
    from uwf_git.commands.mcp.workflows import ChatPlace, build_workflow_server  # noqa: PLC0415 (as above)
    from uwf_git.store.store import open_store  # noqa: PLC0415 (as above)

    path = session.open_store(create=True).path
    place = ChatPlace(
        lambda: open_store(path, environ=session.environ),
        caller_of(session),
        session.agent,
        session.new_thread_id,
    )
    _serve(session, build_workflow_server(place))


def _serve(session: Session, server: McpServer) -> None:
    """Answer every line until the end of the stream."""
    if session.stdin_is_tty:
        from uwf_git.cli.output.screen import note  # noqa: PLC0415 (agents are no terminals)

        note("this is a server for agents, which send it JSON; Ctrl-D ends it")
    while sys.stdin is not None and (line := sys.stdin.buffer.readline(_MOST_BYTES)):
        if not line.strip():
            continue
        reply = server.answer_line(line)
        if reply is not None:
            write_stdout(reply.decode("ascii"))
