"""`json-cas put`."""

from uwf_git.cli.app.verb import verb
from uwf_git.cli.cas.typed_payload import TypedPayload, typed_payload
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas.put import put_payload


@verb(
    "json-cas put FPCV6GD73KKKB person.json",
    "json-cas put Text --text notes.md",
    'echo \'{"name": "Ada"}\' | json-cas put FPCV6G -',
    exits={
        1: "the payload breaks its schema, or refers to what is not there; nothing is stored",
        4: "other processes put nodes meanwhile: it is safe to try again",
    },
)
@typed_payload
def command(session: Session, given: TypedPayload) -> None:
    """Store a JSON value as a node.

    TYPE is a schema: its hash, the beginning of it, or the name of a built-in one (Text). The
    payload must be valid, and every node that it refers to must be in the store. All that the node
    reaches is kept with it, so that git's gc does not remove it. Repeating it changes nothing.
    """
    payload = given.read()
    put = put_payload(session.open_store(create=True), caller_of(session), given.type_text, payload)
    emit(session, {"hash": put.hash, "new": put.new}, text=lambda document: document["hash"])
