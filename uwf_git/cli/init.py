"""`uwf init`."""

import click

from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.init_store import init_store
from uwf_git.errors import BadUsage


class NoPath(BadUsage):
    """The path is there and says nothing, as that of a script whose variable is not set."""

    code = "no-path"

    def __init__(self) -> None:
        super().__init__("the path is empty", hint="name one, or leave it out")


@verb("uwf init", "uwf init .", "uwf init ~/threads.git")
@click.argument("path", required=False)
def command(session: Session, path: str | None) -> None:
    """Create a store.

    PATH becomes a bare repository, unless it is a repository already: a project's own will do,
    since no branch, index or work tree is ever touched. From the folders below it the store is
    found by itself. Without PATH: --repo, $UWF_REPO, or ~/.uwf/store.git.
    """
    if path == "":
        raise NoPath
    made = init_store(path or session.repo, session.cwd, session.environ)
    emit(session, {"repo": made.store.path, "created": made.created})
