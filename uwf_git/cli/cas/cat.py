"""`json-cas cat`."""

import io
import sys

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.cas.node_lines import payload_text
from uwf_git.cli.output.json_text import render_json
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import stdout_is_utf8, write_stdout
from uwf_git.commands.cas.read import cat_node
from uwf_git.model.text import visible_block


@verb("json-cas cat 8FWKR3TN5V1QA", "json-cas cat 8FWKR3TN5V1QA > reply.md")
@click.argument("node", metavar="HASH")
def command(session: Session, node: str) -> None:
    """Print only the payload of a node.

    Text and bytes are printed byte for byte as they were stored; on a terminal, controls are
    escaped. Everything else is JSON, on several lines.
    """
    content = cat_node(session.open_store(), node)
    if content.raw is not None:
        _write_raw(session, content.raw)
    elif session.output_format == "json":
        ascii_only = not stdout_is_utf8()
        write_stdout(render_json(content.payload, pretty=True, ascii_only=ascii_only))
    else:
        emit(session, content.payload, text=payload_text)


def _write_raw(session: Session, content: bytes) -> None:
    if session.stdout_is_tty:
        write_stdout(visible_block(content.decode(errors="backslashreplace")))
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Latin-1 has one character for each byte, so any bytes can be written like all other
        # output, with its handling of closed readers and full disks.
        sys.stdout.reconfigure(encoding="latin-1", newline="\n")
    write_stdout(content.decode("latin-1"))
