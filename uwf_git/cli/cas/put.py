"""`json-cas put`."""

from uwf_git.cli.calling import caller_of
from uwf_git.cli.cas.typed_payload import TypedPayload, typed_payload
from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.cas_put import put_payload


@verb(
    "json-cas put FPCV6GD73KKKB person.json",
    "json-cas put Text --text notes.md",
    'echo \'{"name": "Ada"}\' | json-cas put FPCV6G -',
    exits={
        1: "the payload breaks its schema, or refers to what is not there; nothing is stored",
        4: "others put nodes all the while: it is safe to try again",
    },
)
@typed_payload
def command(session: Session, given: TypedPayload) -> None:
    """Store a JSON value as a node.

    TYPE is a schema: its hash, the beginning of it, or the name of a built-in one (Text). The
    payload has to keep to it, and all that it refers to has to be in the store. What the node
    reaches is kept with it, so that git's gc leaves it. Putting the same again changes nothing.
    """
    payload = given.read()
    put = put_payload(session.open_store(create=True), caller_of(session), given.type_text, payload)
    emit(session, {"hash": put.hash, "new": put.new}, text=lambda document: document["hash"])
