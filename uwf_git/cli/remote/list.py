"""`uwf remote list`."""

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.output.render_text import render_text
from uwf_git.cli.output.table import wide_option
from uwf_git.cli.session.settings import Session
from uwf_git.commands.remote.remotes import list_remote_rows


@verb("uwf remote list --format text")
@wide_option
def command(session: Session, *, wide: bool) -> None:
    """List the remotes.

    Each with how much it had at the last fetch or push. Passwords in URLs are not shown.
    """
    width = None if wide else session.text_width()
    rows = list_remote_rows(session.open_store(create=True))
    none = "no remotes; uwf remote add NAME URL adds one"
    emit(session, rows, text=lambda rows: render_text(rows, width=width), none=none)
