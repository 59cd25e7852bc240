"""`json-cas bootstrap`."""

from typing import Any

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.output.render_text import render_text
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas.put import bootstrap_store


@verb(
    "json-cas bootstrap",
    "json-cas bootstrap --format text",
    exits={4: "other processes put nodes meanwhile: it is safe to try again"},
)
def command(session: Session) -> None:
    """Store the built-in schemas.

    The meta-schema, which is its own type, and the schemas of everything that uwf stores. They are
    the same in every store. Repeating it changes nothing.
    """
    made = bootstrap_store(session.open_store(create=True), caller_of(session))
    emit(session, {"meta": made.meta, "schemas": made.schemas}, text=_table)


def _table(document: dict[str, Any]) -> str:
    named = {"(meta-schema)": document["meta"], **document["schemas"]}
    return render_text([{"name": name, "hash": each} for name, each in named.items()])
