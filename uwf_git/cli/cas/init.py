"""`json-cas init`."""

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas.put import init_cas


@verb("json-cas init", "json-cas init ~/nodes.git")
@click.argument("path", required=False)
def command(session: Session, path: str | None) -> None:
    """Create a store.

    As `uwf init` does, with the built-in schemas in it. PATH becomes a bare repository, unless it
    is a repository already. Without PATH: --repo, $UWF_REPO, or ~/.uwf/store.git.
    """
    made = init_cas(path or session.repo, caller_of(session))
    emit(session, {"repo": made.store.path, "created": made.created})
