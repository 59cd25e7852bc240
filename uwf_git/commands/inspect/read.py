"""`uwf thread read`: a thread as Markdown, with failed attempts. The layout: engine/markdown.py."""

from collections.abc import Callable, Iterable, Iterator

from uwf_git.agents.command_line import agent_name
from uwf_git.commands.inspect.story import Entry, StoryReader, Telling
from uwf_git.engine.markdown import ThreadEntry, fence_text, inline_text, render_document
from uwf_git.model.event_rules import STEPS
from uwf_git.model.event_words import count_attempts, count_steps, describe_files, first_line
from uwf_git.model.text import render_duration, render_time
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head, resolve_thread
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

_LONGEST_TITLE = 100


def render_thread(
    store: Store,
    text: str,
    *,
    last: int | None = None,
    logs: bool = False,
    tell_time: Callable[[int], str] | None = None,
) -> Iterator[str]:
    """Yield the thread that *text* names, or its *last* events, as Markdown, piece by piece.

    *logs* adds the logs that steps keep; logs of failed attempts are always there. With
    *tell_time*, for a person who reads it rendered, times are in words and objects in meta are
    lists rather than JSON.

    Each step is read when it is yielded: all of them could be more than memory holds.
    """
    head = get_head(store, resolve_thread(store, text))
    tip = read_snapshot(store, head.commit)
    start = tip.get_start()
    prompt = start.payload["prompt"]
    # A fork is shown with the history that it began from.
    story = StoryReader(store, Telling(is_whole=True, has_logs=logs)).walk(
        head.thread, head.commit, through_forks=True, last=last
    )
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
        _render_entries(story, tell_time or render_time),
        has_lists=tell_time is not None,
    )


def _name_parent(tip: Snapshot) -> tuple[str, ...]:
    parent = tip.record.parent_thread
    if parent is None:
        return ()
    how = "by an agent of" if tip.get_trunk() is None else "a branch of"
    return (f"{how} thread `{parent}`",)


def _render_entries(
    story: Iterable[Entry], tell_time: Callable[[int], str], *, within: str = "", around: str = ""
) -> Iterator[ThreadEntry]:
    """Yield what is read of each entry, and then of each of its branches.

    For a branch *within* begins the titles, and *around* has the numbers of the branches, each with
    a dot.
    """
    for entry in story:
        if entry["event"] == "start" or (within and entry["event"] == "end"):
            continue
        rendered = _render_entry(entry, tell_time(entry["time"]))
        back = " (taken back)" if entry.get("takenBack") else ""
        yield rendered._replace(title=f"{within}{rendered.title}{back}")
        for branch in entry.get("branches", ()):
            number = f"{around}{branch['number']}"
            name = f"Branch {number} {branch['label']}"
            if "problem" in branch:
                yield ThreadEntry(title=name, text=branch["problem"])
            inner = branch.get("entries", ())
            yield from _render_entries(inner, tell_time, within=f"{name}, ", around=f"{number}.")


def _render_entry(entry: Entry, when: str) -> ThreadEntry:
    if entry["event"] in STEPS:
        return _render_step(entry, when)
    if entry["event"] == "attempt":
        return _render_attempt(entry, when)
    facts = (when, inline_text(entry["by"]))
    if entry["event"] == "split":
        return ThreadEntry(title=entry["title"], facts=facts[:1])
    return ThreadEntry(entry["title"], facts, entry.get("changes"), _get_text(entry, "note"))


def _render_step(entry: Entry, when: str) -> ThreadEntry:
    meta = None if entry["meta"] is None else entry["meta"]["value"]
    content = _place_content(_get_text(entry, "content"))
    if entry["event"] == "join":
        facts: tuple[str, ...] = (when, f"`{entry['node']}`")
        return ThreadEntry(entry["title"], facts, meta, content)
    failed, said = entry["failedAttempts"], entry["said"]
    note, log = _get_text(entry, "note"), _get_text(entry, "log")
    parts = (
        content,
        f"Note: {note}" if note else "",
        f"Its log:\n\n{fence_text(log)}" if log else "",
    )
    return ThreadEntry(
        # A subject that is only the meta is left out: the meta follows.
        title=entry["title"] if not said or said.startswith("{") else f"{entry['title']}: {said}",
        facts=(
            inline_text(agent_name(entry["agent"])),
            # Only the commit names the person, and holds their note.
            inline_text(entry["by"]) if entry["event"] == "answer" else "",
            when,
            _render_duration(entry),
            f"after {count_attempts(failed)}" if failed else "",
            entry["try"],
            describe_files(entry.get("files")),
            f"`{entry['node']}`",
        ),
        meta=meta,
        text="\n\n".join(part for part in parts if part),
    )


def _render_attempt(entry: Entry, when: str) -> ThreadEntry:
    error = entry.get("error", {})
    output = {"It printed:": _get_text(entry, "content"), "Its log:": _get_text(entry, "log")}
    return ThreadEntry(
        title=entry["title"],
        facts=(when, _render_duration(entry), describe_files(entry.get("files"))),
        meta={error.get("kind", "error"): error.get("message", "unknown")},
        text="\n\n".join(
            f"{name}\n\n{fence_text(text)}" for name, text in output.items() if text.strip()
        ),
    )


def _get_text(entry: Entry, name: str) -> str:
    excerpt = entry.get(name)
    return "" if excerpt is None else str(excerpt["text"])


def _place_content(content: str) -> str:
    """Return an agent's content; fence it unless it is prose, so that it keeps its lines."""
    if not content.strip():
        return ""
    lines = content.split("\n")
    is_prose = content.lstrip().startswith(("#", "- ", "* ", "```", ">")) or all(
        not line.startswith((" ", "\t")) and "  " not in line.strip() for line in lines
    )
    return content if is_prose and not content.lstrip().startswith("{") else fence_text(content)


def _render_duration(entry: Entry) -> str:
    duration_ms = entry.get("durationMs")
    return "" if duration_ms is None else render_duration(duration_ms)


def _shortened(title: str) -> str:
    return title if len(title) <= _LONGEST_TITLE else title[: _LONGEST_TITLE - 1] + "…"
