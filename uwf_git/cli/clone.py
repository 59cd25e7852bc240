"""`uwf clone`."""

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.fetch_document import fetch_document, fetch_text
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.caller import without_password_prompt
from uwf_git.cli.session.settings import Session
from uwf_git.commands.remote.fetch import clone_store


@verb(
    "uwf clone git@example.com:team/threads.git",
    "uwf clone https://example.com/threads.git ~/threads.git",
    exits={
        1: "PATH exists, the remote cannot be reached or sends too much; nothing is left behind",
        5: "the remote has damaged refs, which were not adopted; the others are cloned",
    },
)
@click.argument("url")
@click.argument("path", required=False)
def command(session: Session, url: str, path: str | None) -> None:
    """Clone the threads and workflows of another store.

    PATH becomes a bare repository with the threads, the archive and the workflows of URL, and the
    remote origin. Without PATH: the name at the end of URL. To continue a thread of it, say where
    its agents may work (--workdir), and that they may run here (--trust).
    """
    cloned = clone_store(without_password_prompt(session), text_argument(url, "the URL"), path)
    document = {"repo": cloned.path, **fetch_document(cloned.fetched)}
    emit(session, document, text=lambda each: f"repo      {each['repo']}\n{fetch_text(each)}")
    failure = cloned.fetched.failure()
    if failure is not None:
        raise failure
