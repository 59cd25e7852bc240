"""`uwf remote add`."""

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.commands.remote.remotes import add_remote_at


@verb(
    "uwf remote add origin git@example.com:team/threads.git",
    "uwf remote add backup /mnt/backup/threads.git",
    exits={1: "there is a remote of that name"},
)
@click.argument("name")
@click.argument("url")
def command(session: Session, name: str, url: str) -> None:
    """Add a remote.

    URL is a path, host:path, or a URL of ssh, http, https, git or file. It is written to git's
    config, so `git fetch NAME` and `git push NAME` carry threads and workflows as well. The remote
    may be any bare git repository; uwf need not be installed there.
    """
    words = (text_argument(name, "the name"), text_argument(url, "the URL"))
    remote = add_remote_at(session.open_store(create=True), caller_of(session), *words)
    emit(session, {"name": remote.name, "url": remote.shown})
