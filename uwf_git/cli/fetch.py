"""`uwf fetch`."""

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.fetch_document import fetch_document, fetch_text
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.caller import without_password_prompt
from uwf_git.cli.session.settings import Session
from uwf_git.commands.remote.fetch import fetch_remote


@verb(
    "uwf fetch",
    "uwf fetch origin --format text",
    exits={
        1: "there is no such remote, it cannot be reached, or it sends too much",
        4: "a thread is busy, or both sides continued it; the others are fetched",
        5: "a ref is damaged, there or here, and was not adopted; the others are fetched",
    },
)
@click.argument("remote", required=False)
def command(session: Session, remote: str | None) -> None:
    """Fetch threads and workflows from a remote.

    What is new or ahead there is checked for integrity and adopted, each thread while no process
    works on it. Nothing here is lost: where both sides went on, both are kept and named. Without
    REMOTE: the only one, else origin.
    """
    store = session.open_store()
    fetched = fetch_remote(store, without_password_prompt(session), remote)
    emit(session, fetch_document(fetched), text=fetch_text)
    failure = fetched.failure()
    if failure is not None:
        raise failure
