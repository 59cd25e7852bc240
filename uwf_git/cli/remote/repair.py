"""`uwf remote repair`."""

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.commands.remote.remotes import repair_remotes


@verb(
    "uwf remote repair",
    exits={1: "there is no such remote, or its settings are not in this repository's config"},
)
@click.argument("name", required=False)
def command(session: Session, name: str | None) -> None:
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
