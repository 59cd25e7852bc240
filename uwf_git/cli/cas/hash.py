"""`json-cas hash`."""

from uwf_git.cli.app.verb import verb
from uwf_git.cli.cas.typed_payload import TypedPayload, typed_payload
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas.read import hash_payload


@verb(
    "json-cas hash Text --text notes.md",
    "json-cas hash --self meta-schema.json",
)
@typed_payload
def command(session: Session, given: TypedPayload) -> None:
    """Print the hash that a value would have, storing nothing.

    TYPE need not exist, and no store is needed unless TYPE is the beginning of a hash. The payload
    is not checked against its schema.
    """
    name = hash_payload(given.type_text, given.read(), open_store=session.open_store)
    emit(session, {"hash": name}, text=lambda document: document["hash"])
