"""`uwf search`."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.screen import emit, limit_option, note, render_json, shorten
from uwf_git.cli.session import Session, stdout_is_utf8, write_stdout
from uwf_git.commands.inspect.list import check_workflow_known
from uwf_git.commands.inspect.read import SearchRequest, compile_pattern, search_threads
from uwf_git.engine.masking import find_secrets
from uwf_git.model.text import visible_line
from uwf_git.store.threads.naming import read_short_ids

_DEFAULT_LIMIT = 100


@verb(
    "uwf search 'race condition' --format text",
    "uwf search -i timeout --workflow solve-issue --role reviewer",
    "uwf search --regex 'TODO|FIXME' --active",
)
@click.argument("text")
@click.option("-i", "--ignore-case", is_flag=True, help="Ignore case.")
@click.option("--regex", "is_regex", is_flag=True, help="TEXT is a regular expression (Python's).")
@click.option("--workflow", metavar="NAME", help="Only threads of this workflow (name or hash).")
@click.option("--role", metavar="ROLE", help="Only steps of this role.")
@click.option("--active", is_flag=True, help="Only active threads, not the archived ones.")
@limit_option("The most rows to print.", default=_DEFAULT_LIMIT)
def command(session: Session, text: str, *, limit: int, **asked: Any) -> None:
    """Search prompts, meta and content of all threads.

    One row for each prompt, field of meta and content that contains TEXT, newest thread first; step
    0 is the prompt of the thread. A step that forks share is listed once, under the thread that
    took it. Rows are printed as they are found. What looks like a key in the environment is masked.
    Steps that were taken back and failed attempts are not searched: `uwf thread read` shows them.
    """
    pattern = compile_pattern(
        text_argument(text, "the text"),
        ignore_case=asked["ignore_case"],
        is_regex=asked["is_regex"],
    )
    store = session.open_store()
    if asked["workflow"] is not None:
        check_workflow_known(store, asked["workflow"], session.cwd)
    request = SearchRequest(
        pattern,
        asked["workflow"],
        asked["role"],
        archived=not asked["active"],
        secrets=find_secrets(session.environ),
    )
    rows = search_threads(store, request)
    shown = islice(rows, limit)
    if session.output_format == "text":
        width = session.text_width()
        ids = read_short_ids(store) if session.is_screen else None
        row = None
        for row in shown:
            thread = row["thread"] if ids is None else ids.shorten(row["thread"])
            write_stdout(_line({**row, "thread": thread}, width) + "\n")
        if row is None:
            note("nothing is found")
    elif session.output_format == "json":
        _stream_json(session, shown)
    else:
        emit(session, list(shown))
    # After the list: both may go to one terminal.
    if next(rows, None) is not None:
        note(f"note: there are more than {limit}; print them with --limit N")


def _stream_json(session: Session, rows: Iterable[dict[str, Any]]) -> None:
    before = "["
    for row in rows:
        text = render_json(row, pretty=session.stdout_is_tty, ascii_only=not stdout_is_utf8())
        write_stdout(before + text.removesuffix("\n"))
        before = ",\n"
    write_stdout("[]\n" if before == "[" else "]\n")


def _line(row: dict[str, Any], width: int | None) -> str:
    if "error" in row:
        line = f"{row['thread']}  {row['status']}: {row['error']}"
    else:
        who = "start" if row["role"] is None else f"{row['step']}. {row['role']}"
        more = f" (and {row['hits'] - 1} more)" if row["hits"] > 1 else ""
        line = f"{row['thread']}  {who}  {row['field']}: {row['excerpt']}{more}"
    line = visible_line(line)
    return line if width is None else shorten(line, width)
