"""`uwf config list`."""

from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.config_settings import list_settings


@verb("uwf config list --format text")
def command(session: Session) -> None:
    """List the settings.

    Every one there is, with its value as it counts here and what it means.
    """
    settings = list_settings(session.open_store(create=True))
    emit(
        session,
        [
            {"name": setting.name, "value": setting.value, "meaning": setting.meaning}
            for setting in settings
        ],
    )
