"""`uwf thread read`."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.paging import paged
from uwf_git.cli.output.screen import Count, Painted, Screen, Style, emit, render_json, screen_of
from uwf_git.cli.session import Session, stdout_is_utf8, write_stdout
from uwf_git.commands.inspect.read import diff_threads, render_thread
from uwf_git.model.event_folds import count_attempts, count_steps
from uwf_git.model.text import cut, visible_block

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
    left = 0
    for count, line in enumerate(lines):
        if count < _MOST_LINES:
            yield _INDENT + cut(line, _LONGEST_LINE)
        else:
            left += 1
    if left:
        yield f"{_INDENT}… {left} more {'line' if left == 1 else 'lines'} (--format json has all)"


def _value(value: Any) -> str:
    return cut(render_json(value).removesuffix("\n"), _LONGEST_LINE)
