"""`uwf events`."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import click

from uwf_git.cli.app.failure import INTERRUPTED
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.json_text import render_json
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.output.screen import screen_of
from uwf_git.cli.output.step_lines import EventLines
from uwf_git.cli.output.table import limit_option
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import stdout_is_utf8, wait_for_reader, write_stdout
from uwf_git.commands.events.commit_events import EventOptions
from uwf_git.commands.events.stream import EventsRequest, EventStream
from uwf_git.engine.events import parse_event_id
from uwf_git.engine.masking import find_secrets
from uwf_git.errors import StoreDamaged
from uwf_git.store.threads.heads import resolve_thread

_PAUSE_S = 0.2


@verb(
    "uwf events 01J7K9M2 --format text",
    "uwf events --follow | jq -r 'select(.type == \"workflow:error\").taskId'",
    "uwf events --since 4f2a…-progress --follow",
    exits={1: "there is no such thread, or no such event", 130: "a follower was interrupted"},
)
@click.argument("thread", required=False)
@click.option("-f", "--follow", is_flag=True, help="Continue with new events.")
@click.option("--since", metavar="EVENT", help="Start after this event (its id, or a commit).")
@limit_option("Stop after this many events.")
@click.option("--state", is_flag=True, help="Print the thread's state with each event.")
def command(session: Session, thread: str | None, **asked: Any) -> None:
    """Print the events of threads, one per line.

    The oldest comes first. The types are workflow:start, workflow:progress, workflow:complete,
    workflow:error, node:enter and node:exit; of a workflow of containers also loop:iteration,
    parallel:start and parallel:complete. Without THREAD the events of all threads are printed, in
    the order in which this machine has seen them; with it, those of the thread and its branches,
    whose parentTaskId names the thread that split. An event's id is the same everywhere; --since
    prints what comes after it, without gaps or duplicates. As text, what happens to a thread is one
    line, whose event is the last of it.

    --follow alone begins with the turns that are under way, and with a THREAD it stops when the
    thread and its branches have ended. What looks like a key is masked.

    `uwf config set onEvent CMD` makes CMD run for each later event that is recorded here, with the
    event on its standard input. No shell reads CMD; `sh -c '…'` is one.
    """
    events = _Events(session, thread, asked)
    try:
        _print_all(session, events, asked["limit"])
    except KeyboardInterrupt:
        if not asked["follow"]:
            raise
        # A follower ends this way; it needs no message.
        raise click.exceptions.Exit(INTERRUPTED) from None
    if events.damage is not None:
        raise events.damage


class _Events:
    """The events of one call."""

    def __init__(self, session: Session, thread: str | None, asked: dict[str, Any]) -> None:
        self.damage: StoreDamaged | None = None
        """The first error of reading; reported when no more events come."""

        self._follow: bool = asked["follow"]
        self.store = store = session.open_store()
        since = None if asked["since"] is None else parse_event_id(asked["since"])
        from_now = self._follow and since is None
        options = EventOptions(with_state=asked["state"], secrets=find_secrets(session.environ))
        wanted = None if thread is None else resolve_thread(store, thread)
        request = EventsRequest(wanted, since, from_now)
        self._stream = EventStream(store, request, options, self._keep)

    def all(self) -> Iterator[dict[str, Any]]:
        """Yield the recorded events and, with --follow, those that come."""
        yield from self._stream.read()
        while self._follow and not self._stream.is_over:
            wait_for_reader(_PAUSE_S)
            yield from self._stream.read()

    def _keep(self, damage: StoreDamaged) -> None:
        if self._follow:
            note(f"error: {damage.message}")
            return
        if self.damage is not None:
            note(f"error: {self.damage.message}")
        self.damage = damage


def _print_all(session: Session, events: _Events, limit: int | None) -> None:
    """Print the events; as text a happening is one line, and counts as one."""
    if session.output_format == "text":
        lines = EventLines(session, screen_of(session), events.store)
        told = (found for event in events.all() if (found := list(lines.add(event))))
        each = None
        for each in islice(told, limit):
            write_stdout("".join(f"{line}\n" for line in each))
        if each is None:
            note("no events")
        return
    for event in islice(events.all(), limit):
        if session.output_format == "json":
            write_stdout(render_json(event, ascii_only=not stdout_is_utf8()))
        else:
            write_stdout("---\n")
            emit(session, event)
