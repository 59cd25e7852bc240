"""What serves: `uwf ui` to a browser, `uwf mcp` to an agent or a chat."""

import os
import sys
import threading
import webbrowser
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import takewhile
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uwf_git.cli.app.failure import describe_failure
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import caller_of
from uwf_git.cli.mcp_serving import read_lines, serve_agent
from uwf_git.cli.output.screen import emit, note
from uwf_git.cli.session import Session, write_stdout
from uwf_git.commands.mcp.server import McpServer, read_call
from uwf_git.errors import Refused
from uwf_git.store.store import open_store
from uwf_git.surroundings import Lazy

# `uwf ui`.

if TYPE_CHECKING:
    from concurrent import futures as pools

    from uwf_git.agents import group

    # They are of the extra `uwf[ui]`.
    from uwf_git.web.ui.application import Listening
else:
    # An agent's server answers alone.
    pools = Lazy("concurrent.futures")
    group = Lazy("uwf_git.agents.group")

_PARTS = frozenset({"starlette", "uvicorn", "anyio", "h11"})


@verb(
    "uwf ui",
    "uwf ui --port 8400 --no-open",
    exits={
        0: "Ctrl-C ended the page",
        1: "the port cannot be used, or the packages of the page are not installed",
    },
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Listen on this port of 127.0.0.1.  [default: a free port]",
)
@click.option("--no-open", is_flag=True, help="Print the address, and open no browser.")
def command(session: Session, *, port: int, no_open: bool) -> None:
    """Show and steer threads in a browser.

    Prints the address of a page and opens it: what waits for you, what runs, each thread with its
    picture, steps and logs, answers, new threads. The page records what the commands record, and
    trusts no command. Ctrl-C ends it.

    The address holds a key, so it is for you alone. The page listens on this machine only; from
    another machine use `ssh -L`.
    """
    try:
        from uwf_git.web.ui.application import ServeRequest, serve  # noqa: PLC0415 (135 ms, and only if they are installed)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _PARTS:
            raise
        raise Refused(
            f"the page needs a package that is not installed: {error.name}",
            code="ui-missing",
            hint="`pip install 'uwf[ui]'` installs what it needs",
            package=error.name,
        ) from error
    store = session.open_store(create=True)
    request = ServeRequest(
        store,
        caller_of(session),
        session.agent,
        session.new_thread_id,
        lambda failure: describe_failure(failure, session.environ),
        port,
    )

    def tell(listening: "Listening") -> None:
        document = {"address": listening.address, "port": listening.port}
        emit(session, document, text=itemgetter("address"))
        if session.output_format == "text":
            note(f"the page of {store.path}; Ctrl-C ends it")
        if not no_open:
            # Some browsers are waited for until they end.
            opening = partial(_open, session.environ, listening.page)
            threading.Thread(target=opening, daemon=True).start()

    serve(request, tell)


def _open(environ: Mapping[str, str], page: str) -> None:
    """Open *page* in a browser; one that takes over the terminal is none."""
    has_screen = sys.platform == "darwin" or any(
        environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    is_open = False
    with suppress(webbrowser.Error, OSError):
        is_open = has_screen and webbrowser.open(Path(os.path.abspath(page)).as_uri())
    if not is_open:
        note("no browser was opened: open the address yourself")


# `uwf mcp`.


@verb(
    "uwf mcp",
    "claude mcp add uwf -- uwf --repo ~/store.git mcp",
    "claude mcp add uwf -- uwf mcp --workflows",
)
@click.option("--thread", metavar="ID", help="The agent's thread.  [default: $UWF_THREAD_ID]")
@click.option("--role", metavar="ROLE", help="The agent's role.  [default: $UWF_ROLE]")
@click.option("--workflows", is_flag=True, help="Serve a chat instead: it starts workflows.")
def mcp_command(session: Session, thread: str | None, role: str | None, *, workflows: bool) -> None:
    """Serve an agent: let it read its thread and submit its result.

    A server of the Model Context Protocol on standard input and output. Agents start it; `uwf-…`
    adapters configure them to. Its tools are read_thread, read_step, read_role and submit_result.

    With `--workflows` the server is for a person's chat: it lists workflows, starts threads in this
    directory, waits for them, reads and steers them. What it starts outlives it.
    """
    if workflows and (thread is not None or role is not None):
        raise click.UsageError("--thread and --role are an agent's, and --workflows serves a chat")
    if not workflows:
        serve_agent(session, thread=thread, role=role)
        return
    from uwf_git.commands.mcp.workflows import ChatPlace, build_workflow_server  # noqa: PLC0415 (an agent's server needs no YAML and schemas)

    path = session.open_store(create=True).path
    place = ChatPlace(
        lambda: open_store(path, environ=session.environ),
        caller_of(session),
        session.agent,
        session.new_thread_id,
    )
    answer_at_once(build_workflow_server(place), read_lines(session))


_MOST_AT_ONCE = 100


def answer_at_once(server: McpServer, lines: Iterable[bytes]) -> None:
    """Answer each line in a thread: a call that waits for an agent keeps no other one waiting.

    A wait ends when its call is cancelled, which then gets no answer, or after the last line.
    """
    calls: dict[threading.Event, str | int] = {}
    writing, failures = threading.Lock(), list[Exception]()

    def answer(line: bytes, over: threading.Event) -> None:
        try:
            if over not in calls:
                return
            with group.cancellable(over):
                reply = server.answer_line(line)
            with writing:
                if calls.pop(over, None) is not None and reply is not None:
                    write_stdout(reply.decode("ascii"))
        except Exception as failure:  # noqa: BLE001 (raised below)
            failures.append(failure)

    with pools.ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
        try:
            for line in takewhile(lambda _line: not failures, lines):
                call, is_cancelled = read_call(line)
                if not is_cancelled:
                    over = threading.Event()
                    calls[over] = call
                    pool.submit(answer, line, over)
                    continue
                for over in [each for each, asked in list(calls.items()) if asked == call]:
                    calls.pop(over, None)
                    over.set()
        finally:
            for over in list(calls):
                over.set()
    if failures:
        raise failures[0]
