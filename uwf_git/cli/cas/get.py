"""`json-cas get`."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.cas.node_lines import payload_text
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas.read import get_node
from uwf_git.model.text import render_time


@verb("json-cas get 8FWKR3TN5V1QA", "json-cas get 8fwk --format text")
@click.argument("node", metavar="HASH")
def command(session: Session, node: str) -> None:
    """Print a node.

    Its type, its payload, and when it was first written, in milliseconds since 1970. HASH may be
    any unique beginning, in upper or lower case. Threads, workflows and nodes put by hand are
    searched.
    """
    found, type_name = get_node(session.open_store(), node)
    document = {
        "hash": found.hash,
        "type": found.type,
        "payload": found.payload,
        "timestamp": found.timestamp,
    }
    emit(session, document, text=lambda document: _text(document, type_name))


def _text(document: dict[str, Any], type_name: str | None) -> str:
    name = "" if type_name is None else f" ({type_name})"
    return (
        f"node: {document['hash']}\n"
        f"type: {document['type']}{name}\n"
        f"written: {_time(document['timestamp'])}\n\n"
        f"{payload_text(document['payload'])}"
    )


def _time(time_ms: int) -> str:
    return "never: it is built in" if time_ms == 0 else render_time(time_ms)
