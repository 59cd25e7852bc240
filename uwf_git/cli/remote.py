"""`uwf remote ...`."""

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.output.table import render_text, wide_option
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.commands.remote.remotes import (
    add_remote_at,
    list_remote_rows,
    remove_remote,
    repair_remotes,
)


@verb(
    "uwf remote add origin git@example.com:team/threads.git",
    "uwf remote add backup /mnt/backup/threads.git",
    exits={1: "there is a remote of that name"},
)
@click.argument("name")
@click.argument("url")
def add_command(session: Session, name: str, url: str) -> None:
    """Add a remote.

    URL is a path, host:path, or a URL of ssh, http, https, git or file. It is written to git's
    config, so `git fetch NAME` and `git push NAME` carry threads and workflows as well. The remote
    may be any bare git repository; uwf need not be installed there.
    """
    words = (text_argument(name, "the name"), text_argument(url, "the URL"))
    remote = add_remote_at(session.open_store(create=True), caller_of(session), *words)
    emit(session, {"name": remote.name, "url": remote.shown})


@verb("uwf remote list --format text")
@wide_option
def list_command(session: Session, *, wide: bool) -> None:
    """List the remotes.

    Each with how much it had at the last fetch or push. Passwords in URLs are not shown.
    """
    width = None if wide else session.text_width()
    rows = list_remote_rows(session.open_store(create=True))
    none = "no remotes; uwf remote add NAME URL adds one"
    emit(session, rows, text=lambda rows: render_text(rows, width=width), none=none)


@verb("uwf remote remove backup", exits={1: "there is no such remote"})
@click.argument("name")
def remove_command(session: Session, name: str) -> None:
    """Remove a remote.

    What was fetched from it stays here, and the remote itself is not changed.
    """
    remote = remove_remote(session.open_store(), name)
    emit(session, {"name": remote.name, "url": remote.shown})


@verb(
    "uwf remote repair",
    exits={1: "there is no such remote, or its settings are not in this repository's config"},
)
@click.argument("name", required=False)
def repair_command(session: Session, name: str | None) -> None:
    """Make a mirror safe to use.

    In a clone made by `git clone --mirror`, `git fetch` moves threads back over steps, and `git
    push` deletes the threads of others; uwf only reads there. This writes the settings of `uwf
    remote add` instead; branches and tags are still fetched. Without NAME: every mirror. Then `uwf
    fetch` compares both sides.
    """
    repaired = repair_remotes(session.open_store(), caller_of(session), name)
    emit(session, {"repaired": repaired}, text=_text)


def _text(document: dict[str, list[str]]) -> str:
    return "\n".join(f"repaired {name}" for name in document["repaired"]) or "no remote is a mirror"
