"""`uwf thread read`: a thread as Markdown, with failed attempts. The layout: engine/markdown.py."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from uwf_git.agents.command_line import agent_name
from uwf_git.commands.inspect.step_view import Commands, count_failed_attempts, get_text
from uwf_git.commands.split.commits import find_container, label_branch
from uwf_git.engine.markdown import ThreadEntry, fence_text, inline_text, render_document
from uwf_git.model.builtin import ATTEMPT, SIGNAL, STEP
from uwf_git.model.event_rules import STEPS, signal_of
from uwf_git.model.event_words import count_steps, first_line
from uwf_git.model.limits import render_limit
from uwf_git.model.node import Node
from uwf_git.model.references import find_reference
from uwf_git.model.text import render_duration, render_time
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head, get_head, resolve_thread
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.snapshot import Snapshot, get_typed, read_snapshot

_TITLES = {
    "pause": "Paused",
    "resume": "Resumed",
    "retry": "To be tried again",
    "patch": "State changed by hand",
    "amend": "Rules changed",
    "poke": "Newest step taken back",
    "wait": "Waits for a person",
}

CONTROL_EVENTS = frozenset(_TITLES)
"""The events that change how a thread goes on."""


def describe_control(
    snapshot: Snapshot, tip: Snapshot, commands: Commands, *, facts: tuple[str, ...]
) -> ThreadEntry:
    """Describe a control event; *tip* holds its nodes, *facts* say when and who."""
    record = snapshot.record
    title = _TITLES[record.event]
    if record.role is not None:
        title = f"{record.role}: {title[0].lower()}{title[1:]}"
    cause = signal_of(record)
    signal = None if cause is None else get_typed(tip, cause, SIGNAL).payload
    return ThreadEntry(
        title=title,
        facts=facts,
        meta=None if signal is None else _view(signal, snapshot, commands),
        text=snapshot.body,
    )


def _view(signal: dict[str, Any], snapshot: Snapshot, commands: Commands) -> dict[str, Any]:
    """Return what a signal changes, by the names that people type."""
    view: dict[str, Any] = dict(signal.get("patch", {}))
    workflow = find_reference(signal.get("workflow"))
    if workflow is not None:
        view["workflow"] = f"{snapshot.record.workflow_name} {workflow}"
    for role, agent in signal.get("agentBinding", {}).items():
        view[f"agent of {role}"] = commands.describe(agent)
    limits = signal.get("limits", {})
    return view | {name: render_limit(name, value) for name, value in limits.items()}


_LONGEST_TITLE = 100
_MS = 1000


def render_thread(
    store: Store,
    text: str,
    *,
    last: int | None = None,
    logs: bool = False,
    tell_time: Callable[[int], str] | None = None,
) -> Iterator[str]:
    """Yield the thread that *text* names, or its *last* events, as Markdown, piece by piece.

    *logs* adds the logs that steps keep; those of failed attempts are always there. *tell_time*
    is given for a person who reads it rendered: it words the times, and objects in meta are lists
    rather than JSON.

    Each step is read when it is yielded: all of them could be more than memory holds.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: *text* names no thread, or several.
    """
    head = get_head(store, resolve_thread(store, text))
    # A fork is shown with the history that it began from.
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
            f"started {(tell_time or render_time)(start.timestamp)}",
            *_name_parent(tip),
        ),
        prompt,
        _entries(_Reader(store, tip, Commands(tip), logs, tell_time or render_time), story),
        has_lists=tell_time is not None,
    )


def _name_parent(tip: Snapshot) -> tuple[str, ...]:
    parent = tip.record.parent_thread
    if parent is None:
        return ()
    how = "by an agent of" if tip.get_trunk() is None else "a branch of"
    return (f"{how} thread `{parent}`",)


class _Reader(NamedTuple):
    """What the entries of a thread are read from."""

    store: Store
    tip: Snapshot
    """It holds all nodes of the thread."""

    commands: Commands
    logs: bool
    """Whether entries of steps have their logs."""

    tell_time: Callable[[int], str] = render_time
    """How times are worded."""

    around: str = ""
    """Of a branch: its number and those of the branches around it, each with a dot."""


def _branch_entries(
    reader: _Reader, split: Snapshot, ended: Sequence[Oid]
) -> Iterator[ThreadEntry]:
    """Yield the entries of the branches that began with *split*, one branch after the other.

    *ended* has the commits at which they were joined: a fork outlives the refs of its branches.
    """
    around = reader.around
    found = split.get_present().split
    if found is None:
        return
    container = find_container(split, found.at)
    for number, child in enumerate(found.children):
        name = f"Branch {around}{number} {label_branch(container, number)}"
        head = None if ended else find_head(reader.store, child.thread)
        if not ended and head is None:
            continue
        tip = read_snapshot(reader.store, ended[number] if head is None else head.commit)
        inner = reader._replace(tip=tip, commands=Commands(tip), around=f"{around}{number}.")
        history = walk_history(reader.store, tip.commit.oid)
        story = [each for each in history if each.record.event not in {"start", "end"}]
        for entry in _entries(inner, story):
            is_inner = entry.title.startswith("Branch ")
            yield entry if is_inner else entry._replace(title=f"{name}, {entry.title}")


def _entries(reader: _Reader, story: list[Snapshot]) -> Iterator[ThreadEntry]:
    """Yield the entries of *story* (newest first), oldest first; *story* is emptied."""
    taken_back = set(find_taken_back(story))
    joins = dict(pair_joins(story))
    while story:
        snapshot = story.pop()
        entry = _entry(reader, snapshot)
        is_back = snapshot.commit.oid in taken_back
        yield entry._replace(title=f"{entry.title} (taken back)") if is_back else entry
        if snapshot.record.event == "split":
            yield from _branch_entries(reader, snapshot, joins[snapshot.commit.oid])


def pair_joins(story: list[Snapshot]) -> Iterator[tuple[Oid, tuple[Oid, ...]]]:
    """Yield each split of *story* (newest first) with the commits at which its branches ended."""
    ended: tuple[Oid, ...] = ()
    for snapshot in story:
        if snapshot.record.event == "join":
            ended = snapshot.commit.parents[1:]
        elif snapshot.record.event == "split":
            yield snapshot.commit.oid, ended
            ended = ()


def find_taken_back(story: list[Snapshot]) -> Iterator[Oid]:
    """Yield the commits of the steps that a later poke took back; *story* is newest first."""
    pokes = 0
    for snapshot in story:
        event = snapshot.record.event
        pokes += event == "poke"
        if event in STEPS and pokes:
            pokes -= 1
            yield snapshot.commit.oid


def _entry(reader: _Reader, snapshot: Snapshot) -> ThreadEntry:
    event = snapshot.record.event
    if event in STEPS:
        return _step(reader, snapshot)
    if event == "attempt":
        return _attempt(snapshot, reader)
    facts = (reader.tell_time(snapshot.commit.time_s * _MS), inline_text(read_author(snapshot)))
    if event in CONTROL_EVENTS:
        return describe_control(snapshot, reader.tip, reader.commands, facts=facts)
    said = snapshot.subject.partition(": ")[2]
    if event == "split":
        return ThreadEntry(title=f"Split: {said}", facts=facts[:1])
    title = _capital(f"forked {said}" if event == "fork" else said or event)
    return ThreadEntry(title=title, facts=facts, text=snapshot.body)


def _step(reader: _Reader, snapshot: Snapshot) -> ThreadEntry:
    tip = reader.tip
    step = get_typed(tip, snapshot.record.node, STEP)
    payload = step.payload
    said = snapshot.subject.partition(": ")[2]
    content = _content(get_text(tip, payload["content"]), payload["meta"])
    note = f"Note: {snapshot.body}" if snapshot.body else ""
    log = get_text(tip, payload.get("stderr")) if reader.logs else ""
    log = f"Its log:\n\n{fence_text(log)}" if log else ""
    # A subject that is only the meta is left out: the meta follows.
    title = "" if not said or said.startswith("{") else f": {said}"
    if snapshot.record.event == "join":
        return _join(snapshot, step, content, reader.tell_time(step.timestamp))
    return ThreadEntry(
        title=f"{snapshot.record.depth}. {payload['role']}{title}",
        facts=(
            inline_text(agent_name(reader.commands.get(payload["agent"]))),
            # Only the commit names the person, and holds their note.
            inline_text(read_author(snapshot)) if snapshot.record.event == "answer" else "",
            reader.tell_time(step.timestamp),
            _duration(payload),
            _after_attempts(count_failed_attempts(reader.store, snapshot)),
            _tell_try(reader.store, snapshot),
            f"`{step.hash}`",
        ),
        meta=payload["meta"],
        text="\n\n".join(part for part in (content, note, log) if part),
    )


def _tell_try(store: Store, snapshot: Snapshot) -> str:
    """Return which try a step belongs to, and what its verdict said; "" if nobody verifies it."""
    at, now = snapshot.record.at, snapshot.get_present()
    if at is None:
        return ""
    before = read_snapshot(store, snapshot.commit.parents[0]).get_present().tried
    if before is not None and before.at == at and before.is_verdict:
        is_accepted = now.at == at and now.tried is None
        return f"try {before.number} {'accepted' if is_accepted else 'rejected'}"
    tried = now.tried
    return f"try {tried.number}" if tried is not None and tried.at == at else ""


def _join(snapshot: Snapshot, step: Node, content: str, when: str) -> ThreadEntry:
    """Describe a join: its branches have told the rest, but for the result of a whole workflow."""
    meta = step.payload["meta"]
    return ThreadEntry(
        title=f"{snapshot.record.depth}. {snapshot.subject.partition(': ')[2]}",
        facts=(when, f"`{step.hash}`"),
        meta=None if joins_only(meta) else meta,
        text=content,
    )


def joins_only(meta: Any) -> bool:
    """Check that the *meta* of a join only counts branches: it is no result of a workflow."""
    return isinstance(meta, dict) and set(meta) == {"branches"}


def _attempt(snapshot: Snapshot, reader: _Reader) -> ThreadEntry:
    tip = reader.tip
    name = snapshot.get_present().last_attempt
    payload = {} if name is None else get_typed(tip, name, ATTEMPT).payload
    error = payload.get("error", {})
    names = {"content": "It printed:", "stderr": "Its log:"}
    output = {name: get_text(tip, payload.get(stream)) for stream, name in names.items()}
    return ThreadEntry(
        title=f"{snapshot.record.role}: attempt {snapshot.record.attempt} failed",
        facts=(reader.tell_time(snapshot.commit.time_s * _MS), _duration(payload)),
        meta={error.get("kind", "error"): error.get("message", "unknown")},
        text="\n\n".join(
            f"{name}\n\n{fence_text(text)}" for name, text in output.items() if text.strip()
        ),
    )


def _content(content: str, meta: Any) -> str:
    """Return an agent's content; fence it unless it is prose, so that it keeps its lines."""
    if not content.strip() or repeats_meta(meta, content):
        return ""
    lines = content.split("\n")
    is_prose = content.lstrip().startswith(("#", "- ", "* ", "```", ">")) or all(
        not line.startswith((" ", "\t")) and "  " not in line.strip() for line in lines
    )
    return content if is_prose and not content.lstrip().startswith("{") else fence_text(content)


def repeats_meta(meta: Any, content: str) -> bool:
    """Check that the *content* of a step repeats its *meta* and says no more."""
    if not content.lstrip().startswith("{"):
        return False
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return said in (meta, {"meta": meta})


def read_author(snapshot: Snapshot) -> str:
    """Return the name of who made the commit; "" if that is unknown."""
    name = snapshot.commit.author.decode(errors="replace").partition(" <")[0]
    return "" if name == "unknown" else name


def _after_attempts(count: int) -> str:
    return f"after {count} failed attempt{'s' if count > 1 else ''}" if count else ""


def _duration(payload: dict[str, Any]) -> str:
    duration_ms = payload.get("durationMs")
    return "" if duration_ms is None else render_duration(duration_ms)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _shortened(title: str) -> str:
    return title if len(title) <= _LONGEST_TITLE else title[: _LONGEST_TITLE - 1] + "…"
