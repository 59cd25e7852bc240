"""`uwf config list`."""

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.output.render_text import render_text
from uwf_git.cli.output.table import wide_option
from uwf_git.cli.session.settings import Session
from uwf_git.commands.admin.config import list_settings


@verb("uwf config list --format text")
@wide_option
def command(session: Session, *, wide: bool) -> None:
    """List the settings.

    Each has its effective value here and its meaning.
    """
    settings = list_settings(session.open_store(create=True))
    width = None if wide else session.text_width()
    rows = [
        {"name": setting.name, "value": setting.value, "meaning": setting.meaning}
        for setting in settings
    ]
    emit(session, rows, text=lambda rows: render_text(rows, width=width))
