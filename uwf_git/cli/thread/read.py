"""Threads as text: `uwf thread read`, `uwf thread diff` and `uwf search`."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.paging import paged
from uwf_git.cli.output.screen import (
    Count,
    Painted,
    Screen,
    Style,
    emit,
    limit_option,
    note,
    render_json,
    screen_of,
    shorten,
)
from uwf_git.cli.session import Session, stdout_is_utf8, write_stdout
from uwf_git.commands.inspect.list import resolve_asked
from uwf_git.commands.inspect.read import (
    SearchRequest,
    compile_pattern,
    diff_threads,
    render_thread,
    search_threads,
)
from uwf_git.engine.masking import find_secrets
from uwf_git.model.event_folds import count_attempts, count_steps
from uwf_git.model.text import cut, visible_block, visible_line
from uwf_git.store.threads.naming import read_short_ids

_AT_ONCE = 64 * 1024
"""Characters per write: a long thread is written while it is read."""


@verb("uwf thread read 01J7K9M2", "uwf thread read 01J7K9M2 --logs > thread.md")
@click.argument("thread")
@click.option("--last", type=Count(), metavar="N", help="Only the newest N events.")
@click.option("--logs", is_flag=True, help="With the logs that steps keep (`uwf.keepLogs`).")
@click.option("--raw", is_flag=True, help="At a terminal too, print Markdown as it is.")
def command(session: Session, *, thread: str, last: int | None, logs: bool, raw: bool) -> None:
    """Print a thread as readable text.

    Markdown: the task, then every step with its agent, its meta and its text; failed attempts and
    the end as well. At a terminal it is shown as it is meant, in the pager that git uses.
    """
    store = session.open_store()
    is_shown = session.is_screen and stdout_is_utf8() and not raw
    tell_time = screen_of(session).tell_moment if is_shown else None
    pieces = render_thread(store, thread, last=last, logs=logs, tell_time=tell_time)
    # What is wrong with the thread is said before the pager has the terminal.
    first = next(pieces, "")
    with paged(session, store) as reader:
        pieces = (visible_block(piece) for piece in chain([first], pieces))
        if is_shown:
            pieces = _show(pieces, screen_of(reader))
        _write(pieces)


def _show(pieces: Iterator[str], screen: Screen) -> Iterator[str]:
    """Yield each piece, which is whole Markdown, as lines for the screen."""
    from uwf_git.cli.output.markdown_screen import render_markdown  # noqa: PLC0415 (rich takes 60 ms)

    for number, piece in enumerate(pieces):
        yield ("\n" if number else "") + render_markdown(piece, screen)


def _write(pieces: Iterator[str]) -> None:
    waiting = ""
    for piece in pieces:
        waiting += piece
        if len(waiting) > _AT_ONCE:
            write_stdout(waiting)
            waiting = ""
    write_stdout(waiting)


# `uwf thread diff`.

_LONGEST_LINE = 200
_MOST_LINES = 40
_INDENT = "   "
_STYLES: dict[str, Style] = {"+": "green", "-": "red", "~": "yellow", "@": "cyan"}
_MARKS = {"a": "-", "b": "+", "added": "+", "removed": "-", "changed": "~"}


@verb(
    "uwf thread diff 01J7K9M2 01J7KB4Q --format text",
    "uwf thread diff 01J7K9M2 01J7KB4Q | jq '.steps[].meta'",
    exits={1: "there is no such thread"},
)
@click.argument("a")
@click.argument("b")
def diff_command(session: Session, a: str, b: str) -> None:
    """Compare two threads from their common step on.

    A fork and its origin, two forks of one thread, or any two threads: those that share no step are
    compared from their starts. Steps of the same role are compared side by side: what was added,
    removed or changed in their meta, and a unified diff of their text. As text, long diffs are cut;
    the JSON document has them whole.
    """
    store = session.open_store()
    document = diff_threads(store, a, b)
    with paged(session, store) as reader:
        screen = screen_of(reader)
        emit(reader, document, text=lambda document: _coloured(_text(document), screen))


def _coloured(text: str, screen: Screen) -> Painted:
    lines = visible_block(text).split("\n")
    styles = [
        _STYLES.get(line[len(_INDENT) :][:1]) if line.startswith(_INDENT) else None
        for line in lines
    ]
    return Painted("\n".join(map(screen.paint, lines, styles)))


def _text(document: dict[str, Any]) -> str:
    lines = [_thread(name, document[name]) for name in ("a", "b")]
    lines += [_common(document), ""]
    if document["prompt"]:
        lines += ["prompt", *_diff(document["prompt"]), ""]
    for step in document["steps"]:
        lines += [*_step(step), ""]
    if document["state"]:
        lines += ["state", *map(_change, document["state"]), ""]
    return "\n".join(lines[:-1])


def _thread(name: str, thread: dict[str, Any]) -> str:
    facts = [thread[fact] for fact in ("thread", "workflowName", "status")]
    return "  ".join([name, *facts, count_steps(thread["depth"])])


def _common(document: dict[str, Any]) -> str:
    common = document["common"]
    if common is None:
        return "they share no step, and are compared from their starts"
    if document["a"]["commit"] == document["b"]["commit"]:
        return "nothing differs"
    where = "their start"
    if common["depth"]:
        where = f"step {common['depth']}, {common['role']} {common['hash']}"
    after = "" if document["steps"] else "; no step differs"
    if common["commit"] is None:
        return f"alike up to {where}, but not one history{after}"
    commit = f"commit {common['commit'][:10]} of {common['thread']}"
    return f"one history up to {where} ({commit}){after}"


def _step(step: dict[str, Any]) -> Iterator[str]:
    if step["in"] != "both":
        side = step["in"]
        failed = step[side]["failedAttempts"]
        after = f", after {count_attempts(failed)}" if failed else ""
        yield f"{side} {step[side]['number']}. {step['role']}: only in {side}{after}"
        fields = step[side]["meta"]
        fields = fields.items() if isinstance(fields, dict) else [("meta", fields)]
        yield from (f"{_INDENT}{_MARKS[side]} {name}: {_value(each)}" for name, each in fields)
        text = step[side]["content"].rstrip("\n")
        yield from _bounded(f"{_MARKS[side]}{line}" for line in text.split("\n") if text)
        return
    numbers = (step["a"]["number"], step["b"]["number"])
    number = f"{numbers[0]}." if numbers[0] == numbers[1] else f"a {numbers[0]}., b {numbers[1]}."
    same = "" if step["meta"] or step["content"] else ": the same"
    yield f"{number} {step['role']}{same}"
    agents = (step["a"]["agent"], step["b"]["agent"])
    if agents[0] != agents[1]:
        yield f"{_INDENT}~ agent: {cut(agents[0], _LONGEST_LINE)} → {cut(agents[1], _LONGEST_LINE)}"
    failed = [step[side]["failedAttempts"] for side in ("a", "b")]
    if failed[0] != failed[1]:
        yield f"{_INDENT}~ failed attempts: {failed[0]} → {failed[1]}"
    yield from map(_change, step["meta"])
    if step["content"]:
        yield from _diff(step["content"])


def _change(change: dict[str, Any]) -> str:
    told = " → ".join(_value(change[side]) for side in ("before", "after") if side in change)
    return f"{_INDENT}{_MARKS[change['kind']]} {change['path'] or 'meta'}: {told}"


def _diff(diff: str) -> Iterator[str]:
    # The header above names both sides, so the two `---` and `+++` lines are left out.
    return _bounded(iter(diff.removesuffix("\n").split("\n")[2:]))


def _bounded(lines: Iterator[str]) -> Iterator[str]:
    for line in islice(lines, _MOST_LINES):
        yield _INDENT + cut(line, _LONGEST_LINE)
    if left := sum(1 for _ in lines):
        yield f"{_INDENT}… {left} more {'line' if left == 1 else 'lines'} (--format json has all)"


def _value(value: Any) -> str:
    return cut(render_json(value).removesuffix("\n"), _LONGEST_LINE)


# `uwf search`.


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
@limit_option("The most rows to print.", default=100)
def search_command(session: Session, text: str, *, limit: int, **asked: Any) -> None:
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
        asked["workflow"] = resolve_asked(store, asked["workflow"], session.cwd)
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
            write_stdout(_hit({**row, "thread": thread}, width) + "\n")
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


def _hit(row: dict[str, Any], width: int | None) -> str:
    if "error" in row:
        line = f"{row['thread']}  {row['status']}: {row['error']}"
    else:
        who = "start" if row["role"] is None else f"{row['step']}. {row['role']}"
        more = f" (and {row['hits'] - 1} more)" if row["hits"] > 1 else ""
        line = f"{row['thread']}  {who}  {row['field']}: {row['excerpt']}{more}"
    return shorten(visible_line(line), width)
