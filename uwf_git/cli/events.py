"""`uwf events`."""

import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import click

from uwf_git.cli.counts import limit_option
from uwf_git.cli.failure import INTERRUPTED
from uwf_git.cli.json_text import render_json
from uwf_git.cli.render import emit, note
from uwf_git.cli.settings import Session
from uwf_git.cli.streams import ReaderGone, stdout_is_utf8, write_stdout
from uwf_git.cli.text_width import shorten
from uwf_git.cli.verb import verb
from uwf_git.cli.visible import visible_line
from uwf_git.commands.event_stream import AllEvents
from uwf_git.commands.event_thread import ThreadEvents
from uwf_git.commands.thread_events import Telling
from uwf_git.engine.events import parse_event_id
from uwf_git.engine.masking import find_secrets
from uwf_git.errors import StoreDamaged
from uwf_git.model.time_text import render_time
from uwf_git.store.heads import resolve_thread

_PAUSE_S = 0.2


@verb(
    "uwf events 01J7K9M2 --format text",
    "uwf events --follow | jq -r 'select(.type == \"workflow:error\").taskId'",
    "uwf events --since 4f2a…-progress --follow",
    exits={1: "there is no such thread, or no such event", 130: "a follower was interrupted"},
)
@click.argument("thread", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on with what happens from now on.")
@click.option("--since", metavar="EVENT", help="Begin after this event (its id, or a commit).")
@limit_option("Stop after so many events.")
@click.option("--state", is_flag=True, help="Tell the thread's state with each event.")
def command(session: Session, thread: str | None, **asked: Any) -> None:
    """Tell what happens to the threads, one JSON object a line.

    The oldest comes first. The types are workflow:start, workflow:progress, workflow:complete,
    workflow:error, node:enter and node:exit. Without THREAD it is told of all threads, in the
    order in which this machine has seen them move. An event's id is the same everywhere; what
    comes after it is asked for with --since, and neither missed nor doubled.

    --follow alone begins with whose turn it is now, and with a THREAD it ends when that has
    ended. What looks like a key is masked.

    `uwf config set onEvent CMD` has CMD run for each event of what is done here from then on,
    with the event on its standard input. No shell reads CMD; `sh -c '…'` is one.
    """
    events = _Events(session, thread, asked)
    try:
        for event in islice(events.all(), asked["limit"]):
            _print(session, event)
    except KeyboardInterrupt:
        if not asked["follow"]:
            raise
        # That is how a follower ends; there is nothing to tell of it.
        raise click.exceptions.Exit(INTERRUPTED) from None
    if events.damage is not None:
        raise events.damage


class _Events:
    """What one call tells."""

    def __init__(self, session: Session, thread: str | None, asked: dict[str, Any]) -> None:
        self.damage: StoreDamaged | None = None
        """The first of what could not be read; told of when there is no more to come."""

        self._follow: bool = asked["follow"]
        store = session.open_store()
        since = None if asked["since"] is None else parse_event_id(asked["since"])
        from_now = self._follow and since is None
        telling = Telling(with_state=asked["state"], secrets=find_secrets(session.environ))
        self._source: AllEvents | ThreadEvents
        if thread is None:
            self._source = AllEvents(store, telling, self._keep, since=since, from_now=from_now)
        else:
            self._source = ThreadEvents(
                store, resolve_thread(store, thread), telling, since=since, from_now=from_now
            )

    def all(self) -> Iterator[dict[str, Any]]:
        """Give what there is, and if it is followed, what comes."""
        yield from self._source.read()
        while self._follow and not self._source.is_over:
            _pause()
            yield from self._source.read()

    def _keep(self, damage: StoreDamaged) -> None:
        if self._follow:
            note(f"error: {damage.message}")
            return
        if self.damage is not None:
            note(f"error: {self.damage.message}")
        self.damage = damage


def _pause() -> None:
    """Wait a moment, or notice that nobody reads any more.

    Raises:
        ReaderGone: so it is.
    """
    poller = select.poll()
    with suppress(OSError, ValueError, AttributeError):
        poller.register(sys.stdout.fileno(), 0)
        if poller.poll(_PAUSE_S * 1000):
            raise ReaderGone
        return
    # Nothing with a number, as in a program that has us for a part.
    time.sleep(_PAUSE_S)


def _print(session: Session, event: dict[str, Any]) -> None:
    if session.output_format == "json":
        write_stdout(render_json(event, ascii_only=not stdout_is_utf8()))
    elif session.output_format == "yaml":
        write_stdout("---\n")
        emit(session, event)
    else:
        line = visible_line(_line(event))
        width = session.text_width()
        write_stdout((line if width is None else shorten(line, width)) + os.linesep)


def _line(event: dict[str, Any]) -> str:
    payload = event["payload"]
    who = payload.get("nodeName")
    turn = "" if who is None else f" {who} {payload['iteration']}"
    said = payload.get("error") or event["reason"] or event["subject"]
    when = render_time(event["timestamp"])
    told = f"{when}  {event['taskId']}  {event['type']}{turn}"
    return told if said is None else f"{told}: {said}"
