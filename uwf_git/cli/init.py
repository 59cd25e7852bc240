"""`uwf init`."""

import sys

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.screen import emit, note
from uwf_git.cli.session import Session
from uwf_git.commands.admin.init import init_shared, init_store
from uwf_git.errors import BadUsage


@verb("uwf init", "uwf init .", "uwf init --shared /srv/threads.git")
@click.option(
    "--shared",
    is_flag=True,
    help="Let a group push to it, and install the hooks that check every push.",
)
@click.argument("path", required=False)
def command(session: Session, path: str | None, shared: bool) -> None:  # noqa: FBT001 (click calls it so)
    """Create a store.

    PATH becomes a bare repository, unless it is a repository already: a project's own will do,
    since no branch, index or work tree is ever touched. In a folder of it, `uwf init .` finds it.
    Commands in the folders below it find the store by themselves. Without PATH: --repo, $UWF_REPO,
    or ~/.uwf/store.git.

    With --shared it is a bare repository for several people: its files belong to their group, and a
    pre-receive hook refuses pushes that would damage threads. Repeat it after uwf has moved.
    """
    if path == "":
        raise BadUsage("the path is empty", code="no-path", hint="give a path, or leave it out")
    place = path or session.repo
    if shared:
        python = sys.executable or ""
        hub = init_shared(place, session.cwd, session.environ, python=python)
        emit(session, {"repo": hub.store.path, "created": hub.created, "hooks": hub.hooks})
    else:
        made = init_store(place, session.cwd, session.environ)
        if made.is_adopted:
            note(
                f"note: the repository {made.store.path} is a store now: threads live beside its "
                "branches, in refs of their own; no branch, index or work tree is touched"
            )
        emit(session, {"repo": made.store.path, "created": made.created})
