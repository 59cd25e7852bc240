"""`uwf remote list`."""

from uwf_git.cli.render import emit
from uwf_git.cli.render_text import render_text
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.remote_list import list_rows


@verb("uwf remote list --format text")
def command(session: Session) -> None:
    """List the remotes.

    With each, how much was there when it was last fetched from, or pushed to. Passwords in URLs
    are not shown.
    """
    width = session.text_width()
    rows = list_rows(session.open_store(create=True))
    emit(session, rows, text=lambda rows: render_text(rows, width=width))
