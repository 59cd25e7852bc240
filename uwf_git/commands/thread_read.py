"""`uwf thread read`: a thread told as Markdown.

Owns: which events are told, and in which words. Knows nothing of: the layout (engine/markdown).
Always true: it tells what the commits say, failed attempts and all; it changes nothing.
"""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from uwf_git.commands.agent_name import agent_name
from uwf_git.commands.control_entry import CONTROL_EVENTS, tell_control
from uwf_git.commands.step_view import Commands, get_text
from uwf_git.commands.typed_node import get_typed
from uwf_git.engine.markdown import Entry, fence_text, inline_text, render_document
from uwf_git.engine.subject import count_steps, first_line
from uwf_git.model.builtin import ATTEMPT, STEP
from uwf_git.model.thread import STEPS
from uwf_git.model.time_text import render_duration, render_time
from uwf_git.store.heads import get_head, resolve_thread
from uwf_git.store.history import walk_history
from uwf_git.store.refs import Oid
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store

_LONGEST_TITLE = 100
_MS = 1000


def read_thread(store: Store, text: str, *, last: int | None = None) -> str:
    """Tell the thread that *text* means, or its *last* events, in one piece.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: no thread is meant.
        StoreDamaged: it cannot be read.
    """
    return "".join(tell_thread(store, text, last=last))


def tell_thread(store: Store, text: str, *, last: int | None = None) -> Iterator[str]:
    """Tell the thread that *text* means, or its *last* events, piece by piece.

    What was said is read when its turn comes: all of it could be more than memory holds.

    Raises:
        As ``read_thread``; of what was said, when its turn comes.
    """
    head = get_head(store, resolve_thread(store, text))
    # A reader of a fork wants to know how it came to where it begins.
    history = walk_history(store, head.commit, through_forks=True)
    events = (each for each in history if each.record.event != "start")
    story = list(islice(events, last))
    tip = story[0] if story else read_snapshot(store, head.commit)
    start = tip.get_start()
    prompt = start.payload["prompt"]
    yield from render_document(
        _shortened(first_line(prompt) or "thread"),
        (
            f"thread `{head.thread}`",
            f"workflow **{inline_text(tip.record.workflow_name)}** `{tip.record.workflow}`",
            f"**{tip.record.status}**",
            count_steps(tip.record.depth),
            f"started {render_time(start.timestamp)}",
        ),
        prompt,
        _entries(story, tip),
    )


def _entries(story: list[Snapshot], tip: Snapshot) -> Iterator[Entry]:
    """Give what is told of *story* (newest first), oldest first; it is used up."""
    commands = Commands(tip)
    taken_back = set(_taken_back(story))
    while story:
        snapshot = story.pop()
        entry = _entry(snapshot, tip, commands)
        is_back = snapshot.commit.oid in taken_back
        yield entry._replace(title=f"{entry.title} (taken back)") if is_back else entry


def _taken_back(story: list[Snapshot]) -> Iterator[Oid]:
    """Give the commits of the steps that were poked away since; *story* is newest first."""
    pokes = 0
    for snapshot in story:
        event = snapshot.record.event
        pokes += event == "poke"
        if event in STEPS and pokes:
            pokes -= 1
            yield snapshot.commit.oid


def _entry(snapshot: Snapshot, tip: Snapshot, commands: Commands) -> Entry:
    event = snapshot.record.event
    if event in STEPS:
        return _step(snapshot, tip, commands)
    if event == "attempt":
        return _attempt(snapshot, tip)
    facts = (render_time(snapshot.commit.time_s * _MS), _author(snapshot))
    if event in CONTROL_EVENTS:
        return tell_control(snapshot, tip, commands, facts=facts)
    said = snapshot.subject.partition(": ")[2]
    title = _capital(f"forked {said}" if event == "fork" else said or event)
    return Entry(title=title, facts=facts, text=snapshot.body)


def _step(snapshot: Snapshot, tip: Snapshot, commands: Commands) -> Entry:
    step = get_typed(tip, snapshot.record.node, STEP)
    payload = step.payload
    said = snapshot.subject.partition(": ")[2]
    content = _content(get_text(tip, payload["content"]), payload["meta"])
    note = f"Note: {snapshot.body}" if snapshot.body else ""
    # A subject that is only the meta is told below, better.
    title = "" if not said or said.startswith("{") else f": {said}"
    return Entry(
        title=f"{snapshot.record.depth}. {payload['role']}{title}",
        facts=(
            inline_text(agent_name(commands.get(payload["agent"]))),
            # Which person it was stands in the commit alone, as does their note.
            _author(snapshot) if snapshot.record.event == "answer" else "",
            render_time(step.timestamp),
            _duration(payload),
            f"`{step.hash}`",
        ),
        meta=payload["meta"],
        text="\n\n".join(part for part in (content, note) if part),
    )


def _attempt(snapshot: Snapshot, tip: Snapshot) -> Entry:
    name = snapshot.get_present().last_attempt
    payload = {} if name is None else get_typed(tip, name, ATTEMPT).payload
    error = payload.get("error", {})
    names = {"content": "It printed:", "stderr": "Its log:"}
    output = {name: get_text(tip, payload.get(stream)) for stream, name in names.items()}
    return Entry(
        title=f"{snapshot.record.role}: attempt {snapshot.record.attempt} failed",
        facts=(render_time(snapshot.commit.time_s * _MS), _duration(payload)),
        meta={error.get("kind", "error"): error.get("message", "unknown")},
        text="\n\n".join(
            f"{name}\n\n{fence_text(text)}" for name, text in output.items() if text.strip()
        ),
    )


def _content(content: str, meta: Any) -> str:
    """Give what an agent said; output that is no prose keeps its lines."""
    if not content.strip() or _is_only(meta, content):
        return ""
    lines = content.split("\n")
    is_prose = content.lstrip().startswith(("#", "- ", "* ", "```", ">")) or all(
        not line.startswith((" ", "\t")) and "  " not in line.strip() for line in lines
    )
    return content if is_prose and not content.lstrip().startswith("{") else fence_text(content)


def _is_only(meta: Any, content: str) -> bool:
    """Tell whether *content* says nothing but *meta*, which is told already."""
    if not content.lstrip().startswith("{"):
        return False
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return said in (meta, {"meta": meta})


def _author(snapshot: Snapshot) -> str:
    name = snapshot.commit.author.decode(errors="replace").partition(" <")[0]
    return "" if name == "unknown" else inline_text(name)


def _duration(payload: dict[str, Any]) -> str:
    duration_ms = payload.get("durationMs")
    return "" if duration_ms is None else render_duration(duration_ms)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _shortened(title: str) -> str:
    return title if len(title) <= _LONGEST_TITLE else title[: _LONGEST_TITLE - 1] + "…"
