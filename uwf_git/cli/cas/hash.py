"""`json-cas hash`."""

from uwf_git.cli.cas.typed_payload import TypedPayload, typed_payload
from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.cas_hash import hash_payload


@verb(
    "json-cas hash Text --text notes.md",
    "json-cas hash --self meta-schema.json",
)
@typed_payload
def command(session: Session, given: TypedPayload) -> None:
    """Print the name a value would have, storing nothing.

    TYPE need not exist, and there need be no store; only to find a type by the beginning of its
    hash is one looked into. The payload is not held against its schema.
    """
    name = hash_payload(given.type_text, given.read(), open_store=session.open_store)
    emit(session, {"hash": name}, text=lambda document: document["hash"])
