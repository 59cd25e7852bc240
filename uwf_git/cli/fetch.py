"""`uwf fetch`."""

import click

from uwf_git.cli.asked_caller import asked_caller
from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.fetch_document import fetch_document, fetch_text
from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.fetch_refs import fetch_remote


@verb(
    "uwf fetch",
    "uwf fetch origin --format text",
    exits={
        1: "there is no such remote, or it cannot be reached",
        4: "a thread is busy, or both sides went on with it; the others are fetched",
        5: "something is damaged, there or here, and was not taken over; the others are fetched",
    },
)
@click.argument("remote", required=False)
def command(session: Session, remote: str | None) -> None:
    """Fetch threads and workflows from a remote.

    What is new or ahead there is taken over, each thread while nobody works on it, after a check
    that it is whole. Nothing here is ever lost: where both sides went on, both are kept and named.
    Without REMOTE: the only one, else origin.
    """
    store = session.open_store()
    fetched = fetch_remote(store, asked_caller(session), remote)
    emit(session, fetch_document(fetched), text=fetch_text)
    pack_when_due(session, store)
    failure = fetched.failure()
    if failure is not None:
        raise failure
