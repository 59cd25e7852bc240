"""`json-cas schema get`."""

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.cas.node_lines import payload_text
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas.schema import get_schema_payload


@verb("json-cas schema get FPCV6GD73KKKB", "json-cas schema get StepNode --format yaml")
@click.argument("schema", metavar="HASH")
def command(session: Session, schema: str) -> None:
    """Print a JSON Schema.

    HASH may be any unique beginning, or the name of a built-in schema (Text).
    """
    emit(session, get_schema_payload(session.open_store(), schema), text=payload_text)
