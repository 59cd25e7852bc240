"""`uwf config list`."""

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.commands.admin.config import list_settings


@verb("uwf config list --format text")
def command(session: Session) -> None:
    """List the settings.

    Each has its effective value here and its meaning.
    """
    settings = list_settings(session.open_store(create=True))
    emit(
        session,
        [
            {"name": setting.name, "value": setting.value, "meaning": setting.meaning}
            for setting in settings
        ],
    )
