"""`uwf thread read`: a thread as Markdown, with failed attempts. The layout: engine/markdown.py."""

import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat, takewhile, zip_longest
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from uwf_git.agents.command_line import agent_name
from uwf_git.commands.inspect.list import name_damage, walk_threads
from uwf_git.commands.inspect.show import Commands, get_text, view_branches
from uwf_git.commands.inspect.story import Entry, StoryReader, Telling, count_failed
from uwf_git.engine.diff import ValuePath, align, diff_texts, diff_values
from uwf_git.engine.markdown import ThreadEntry, fence_text, inline_text, render_document
from uwf_git.engine.masking import MASK, mask
from uwf_git.errors import BadUsage, StoreDamaged
from uwf_git.model.builtin import START, STEP, find_reference
from uwf_git.model.event_folds import count_attempts, count_steps, describe_files
from uwf_git.model.event_rules import STEPS
from uwf_git.model.names import NodeHash, Oid, ThreadId
from uwf_git.model.node import Node, render_path
from uwf_git.model.text import cut, first_line, render_duration, render_time
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, get_head
from uwf_git.store.threads.history import (
    Snapshot,
    check_type,
    find_tip,
    read_snapshot,
    read_trunk,
    walk_history,
)
from uwf_git.store.threads.naming import resolve_thread

# Text search in JSON values: patterns, places, one-line excerpts that are masked before cut.

_BEFORE, _AFTER = 40, 80
_ELLIPSIS = "…"


def _bad_pattern(text: str, problem: str) -> BadUsage:
    return BadUsage(
        f"{text[:60]!r} cannot be searched for: {problem}",
        code="bad-pattern",
        hint="without --regex every character stands for itself",
        pattern=text[:60],
    )


class Found(NamedTuple):
    excerpt: str
    """The first match and the text around it."""

    hits: int


def compile_pattern(text: str, *, ignore_case: bool, is_regex: bool) -> re.Pattern[str]:
    """Compile *text*; in a regular expression ^ and $ match at line ends."""
    if not text:
        raise _bad_pattern(text, "it is empty")
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else re.NOFLAG)
    try:
        with warnings.catch_warnings():
            # Warnings about what later versions of Python will read differently.
            warnings.simplefilter("ignore")
            return re.compile(text if is_regex else re.escape(text), flags)
    except (re.error, RecursionError, OverflowError) as error:
        raise _bad_pattern(text, str(error) or type(error).__name__) from error


def find_in(pattern: re.Pattern[str], text: str, secrets: Sequence[str] = ()) -> Found | None:
    """Find *pattern* in *text*; None if it does not match. Empty matches do not count."""
    spans = _spans(pattern, text)
    first = next(spans, None)
    if first is None:
        return None
    hits = 1 + sum(1 for _span in spans)
    masked = mask(text, secrets)
    if masked != text:
        # A match within a secret is not shown.
        first = next(_spans(pattern, masked), None)
    return Found(MASK if first is None else _excerpt(masked, first), hits)


def walk_texts(value: Any) -> Iterator[tuple[ValuePath, str]]:
    """Yield the texts and numbers in a JSON value, with their paths, in its order."""
    waiting: list[tuple[ValuePath, Any]] = [((), value)]
    while waiting:
        path, each = waiting.pop()
        if isinstance(each, dict):
            waiting += [((*path, key), each[key]) for key in reversed(each)]
        elif isinstance(each, list):
            waiting += [((*path, at), each[at]) for at in reversed(range(len(each)))]
        elif isinstance(each, str):
            yield path, each
        elif isinstance(each, int | float) and not isinstance(each, bool):
            yield path, json.dumps(each)


def _spans(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in pattern.finditer(text) if match[0])


def _excerpt(text: str, span: tuple[int, int]) -> str:
    start = max(span[0] - _BEFORE, 0)
    end = min(max(span[0] + _AFTER, min(span[1], span[0] + 2 * _AFTER)), len(text))
    line = " ".join(text[start:end].split())
    return f"{_ELLIPSIS if start else ''}{line}{_ELLIPSIS if end < len(text) else ''}"


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
    start, parent = tip.get_start(), tip.record.parent_thread
    prompt = start.payload["prompt"]
    how = "by an agent of" if tip.get_trunk() is None else "a branch of"
    # A fork is shown with the history that it began from.
    story = StoryReader(store, Telling(is_whole=True, has_logs=logs)).walk(
        head.thread, head.commit, through_forks=True, last=last
    )
    yield from render_document(
        cut(first_line(prompt) or "thread", _LONGEST_TITLE),
        (
            f"thread `{head.thread}`",
            f"workflow **{inline_text(tip.record.workflow_name)}** `{tip.record.workflow}`",
            f"**{tip.record.status}**",
            count_steps(tip.record.depth),
            f"started {(tell_time or render_time)(start.timestamp)}",
            f"{how} thread `{parent}`" if parent else "",
        ),
        prompt,
        _render_entries(story, tell_time or render_time),
        has_lists=tell_time is not None,
    )


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
                yield ThreadEntry(title=name, text=inline_text(branch["problem"]))
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
    changes, note = _get_value(entry, "changes"), _get_text(entry, "note")
    return ThreadEntry(entry["title"], facts, changes, note)


def _render_step(entry: Entry, when: str) -> ThreadEntry:
    meta = _get_value(entry, "meta")
    content = _place_content(_get_text(entry, "content"))
    if entry["event"] == "join":
        facts: tuple[str, ...] = (when, f"`{entry['node']}`")
        return ThreadEntry(entry["title"], facts, meta, content)
    failed, said = entry["failedAttempts"], entry["said"]
    note, log = _get_text(entry, "note"), _get_text(entry, "log")
    aside = [f"Note: {note}"] if note else []
    aside += [f"Its log:\n\n{fence_text(log)}"] if log else []
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
        text="\n\n".join([*([content] if content else []), *aside]),
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


def _get_value(entry: Entry, name: str) -> Any:
    excerpt = entry.get(name)
    return None if excerpt is None else excerpt["value"]


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


# `uwf thread diff`: the differences between two threads from their last common step on.


_Link = TypeVar("_Link")


class Divergence(NamedTuple):
    one: list[Node]
    """The StepNodes that only the first thread has, oldest first."""

    other: list[Node]

    node: NodeHash | None
    """The newest node that both threads have, possibly the StartNode; None: nothing is shared."""

    depth: int
    """How many steps both have."""


def part_chains(one: Snapshot, other: Snapshot) -> Divergence:
    """Walk the chains of two threads back to their newest common node."""
    ahead = one.record.depth - other.record.depth
    # The longer chain goes first, so that no node is read in vain.
    ones = chain(repeat(None, -ahead), one.walk_chain())
    others = chain(repeat(None, ahead), other.walk_chain())
    node, parts = _meet(ones, others, attrgetter("hash"))
    steps = [[each for each in reversed(part) if each.type == STEP] for part in parts]
    depth = 0 if node is None else max(one.record.depth - len(steps[0]), 0)
    return Divergence(steps[0], steps[1], None if node is None else node.hash, depth)


def find_shared_commit(objects: ObjectStore, one: Oid, other: Oid) -> Oid | None:
    """Find the newest commit that both first-parent histories have."""
    return _meet(_walk(objects, one), _walk(objects, other), str)[0]


def _meet(
    one: Iterator[_Link | None], other: Iterator[_Link | None], name: Callable[[_Link], object]
) -> tuple[_Link | None, list[list[_Link]]]:
    """Return what two walks meet at, and what each has before that.

    Both walks advance in turn, so that the cost is the distance to where they meet; at None a walk
    waits.
    """
    seen: tuple[dict[object, _Link], ...] = ({}, {})
    for links in zip_longest(one, other):
        for side, link in enumerate(links):
            if link is not None:
                seen[side][name(link)] = link
                if name(link) in seen[1 - side]:
                    ends = [list(each).index(name(link)) for each in seen]
                    pairs = zip(seen, ends, strict=True)
                    return link, [list(each.values())[:end] for each, end in pairs]
    return None, [list(each.values()) for each in seen]


def _walk(objects: ObjectStore, tip: Oid) -> Iterator[Oid]:
    oid: Oid | None = tip
    while oid is not None:
        yield oid
        oid = next(iter(read_commit(objects, oid).parents), None)


class _Side(NamedTuple):
    name: str
    head: Head
    tip: Snapshot
    commands: Commands
    steps: list[Node]
    """The steps that only this thread has, oldest first."""

    first: int

    taken: dict[NodeHash, tuple[Snapshot, int]]
    """The commit of each step, and how many attempts failed before it."""

    def find(self, at: int | None) -> "_Turn | None":
        if at is None:
            return None
        step = check_type(self.steps[at], STEP)
        return _Turn(self, self.first + at, step, *self.taken.get(step.hash, (None, 0)))


class _Turn(NamedTuple):
    side: _Side
    number: int
    node: Node
    commit: Snapshot | None
    failed: int

    @property
    def content(self) -> str:
        """What was said; of a join, by the branches."""
        said = [get_text(self.side.tip, self.node.payload.get("content"))]
        is_join = "branches" in self.node.payload
        for each in view_branches(self.commit) if is_join and self.commit else ():
            meta = json.dumps(each["meta"], ensure_ascii=False)
            said.append(f"{each['role']}: {meta}\n{each['content']}")
        return "\n\n".join(filter(None, said))

    def view(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "hash": self.node.hash,
            "agent": self.side.commands.get(self.node.payload.get("agent")),
            "timestamp": self.node.timestamp,
            "failedAttempts": self.failed,
        }


def diff_threads(store: Store, one: str, other: str) -> dict[str, Any]:
    """Compare two threads, active or archived; from their starts if they share no step."""
    heads = [get_head(store, resolve_thread(store, text)) for text in (one, other)]
    tips = [read_snapshot(store, head.commit) for head in heads]
    parted = part_chains(tips[0], tips[1])
    first = parted.depth + 1
    taken = [_find_taken(store, head, parted.node) for head in heads]
    a = _Side("a", heads[0], tips[0], Commands(tips[0]), parted.one, first, taken[0])
    b = _Side("b", heads[1], tips[1], Commands(tips[1]), parted.other, first, taken[1])
    states = [dict(tip.get_present().state) for tip in tips]
    prompts = [tip.get_start().payload["prompt"] for tip in tips]
    return {
        "a": _view_thread(a),
        "b": _view_thread(b),
        "common": _view_common(store, a, b, parted),
        "prompt": diff_texts(*prompts) or None,
        "steps": list(_view_steps(a, b)),
        "state": _view_changes(states[0], states[1]),
    }


def _find_taken(
    store: Store, head: Head, after: NodeHash | None
) -> dict[NodeHash, tuple[Snapshot, int]]:
    """Return ``_Side.taken`` of the steps after the step *after*."""
    steps = count_failed(walk_history(store, head.commit, through_forks=True))
    later = list(takewhile(lambda each: each[0].record.node != after, steps))
    # After a poke an equal step has the same node; the newest, here the last, counts.
    return {step.record.node: (step, count) for step, count in later[::-1]}


def _view_thread(side: _Side) -> dict[str, Any]:
    record = side.tip.record
    return {
        "thread": side.head.thread,
        "workflow": record.workflow,
        "workflowName": record.workflow_name,
        "status": record.status,
        "depth": record.depth,
        "head": record.node,
        "commit": side.head.commit,
    }


def _view_common(store: Store, a: _Side, b: _Side, parted: Divergence) -> dict[str, Any] | None:
    """Return the newest common step, and the common commit if there is one; None for no step."""
    if parted.node is None:
        return None
    node = a.tip.get_node(parted.node)
    commit = find_shared_commit(store.objects, a.head.commit, b.head.commit)
    # Equal steps do not make a shared history: two threads may be the same by chance.
    thread = None if commit is None else read_snapshot(store, commit).record.thread
    return {
        "depth": parted.depth,
        "hash": parted.node,
        "role": node.payload["role"] if node.type == STEP else None,
        "thread": thread,
        "commit": commit,
    }


def _view_steps(a: _Side, b: _Side) -> Iterator[dict[str, Any]]:
    roles = [[check_type(step, STEP).payload["role"] for step in side.steps] for side in (a, b)]
    for pair in align(roles[0], roles[1]):
        one, other = a.find(pair.one), b.find(pair.other)
        if one is not None and other is not None:
            yield _view_both(one, other)
        elif turn := one or other:
            payload, name = turn.node.payload, turn.side.name
            view = {**turn.view(), "meta": payload["meta"], "content": turn.content}
            yield {"in": name, "role": payload["role"], name: view}


def _view_both(one: _Turn, other: _Turn) -> dict[str, Any]:
    return {
        "in": "both",
        "role": one.node.payload["role"],
        "a": one.view(),
        "b": other.view(),
        "meta": _view_changes(one.node.payload["meta"], other.node.payload["meta"]),
        "content": diff_texts(one.content, other.content) or None,
    }


def _view_changes(one: Any, other: Any) -> list[dict[str, Any]]:
    views = []
    for change in diff_values(one, other):
        view = {"kind": change.kind, "path": render_path(change.path)}
        if change.kind != "added":
            view["before"] = change.before
        if change.kind != "removed":
            view["after"] = change.after
        views.append(view)
    return views


# `uwf search`: find a pattern in the prompts, metas and contents of threads, newest thread first.
#
# A step that forks share is searched once, and listed under the thread that took it, or, if that
# thread is not searched, under its newest fork. A step of a branch is listed under the branch
# alone. A damaged thread has a row that says so.


class SearchRequest(NamedTuple):
    pattern: re.Pattern[str]
    workflow: str | None = None

    role: str | None = None

    archived: bool = True

    secrets: tuple[str, ...] = ()
    """Texts to mask in the excerpts."""


def search_threads(store: Store, request: SearchRequest) -> Iterator[dict[str, Any]]:
    return _Search(store, request).rows()


class _Stretch(NamedTuple):
    thread: ThreadId
    tip: Snapshot

    is_joined: bool = False
    """The steps are of a branch that was joined: they all get the number of the join's step."""


class _Search:
    def __init__(self, store: Store, request: SearchRequest) -> None:
        self._store, self._request = store, request
        # A step by its node; a StartNode by the commit that began its thread, since a thread that
        # is started alike has the same node.
        self._seen: set[NodeHash | Oid] = set()
        self._damaged: set[ThreadId] = set()
        # The steps before forks, and of branches: most belong to a thread that is searched later.
        self._behind: list[_Stretch] = []

    def rows(self) -> Iterator[dict[str, Any]]:
        for thread in walk_threads(self._store, archived=self._request.archived):
            yield from self._catch_damage(thread, self._search(thread))
        # Branches of branches are added on the way.
        for stretch in self._behind:
            yield from self._catch_damage(stretch.thread, self._search_behind(stretch))

    def _catch_damage(
        self, thread: ThreadId, rows: Iterator[dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        try:
            yield from rows
        except StoreDamaged as error:
            if thread not in self._damaged:
                self._damaged.add(thread)
                yield {"thread": thread, "status": name_damage(error), "error": error.message}

    def _search(self, thread: ThreadId) -> Iterator[dict[str, Any]]:
        tip = find_tip(self._store, thread)
        if tip is None:
            # Its ref was removed in the meantime.
            return
        names = {tip.record.workflow, tip.record.workflow_name}
        if self._request.workflow is not None and self._request.workflow not in names:
            return
        shared, first = _count_shared(self._store, tip)
        depth = tip.record.depth
        for node in tip.walk_chain():
            if shared is not None and depth <= shared:
                record = tip.record._replace(node=node.hash, depth=depth)
                self._behind.append(_Stretch(thread, tip._replace(record=record)))
                return
            self._seen.add(first if _begins_thread(node) else node.hash)
            yield from self._look(thread, depth, node, tip)
            depth -= 1

    def _search_behind(self, stretch: _Stretch) -> Iterator[dict[str, Any]]:
        depth = stretch.tip.record.depth
        for node in stretch.tip.walk_chain():
            name = self._find_first(stretch.tip) if _begins_thread(node) else node.hash
            if name in self._seen:
                return
            self._seen.add(name)
            yield from self._look(stretch.thread, depth, node, stretch.tip)
            depth -= not stretch.is_joined

    def _find_first(self, tip: Snapshot) -> Oid:
        *_, first = walk_history(self._store, tip.commit.oid, through_forks=True)
        return first.commit.oid

    def _look(
        self, thread: ThreadId, depth: int, node: Node, tip: Snapshot
    ) -> Iterator[dict[str, Any]]:
        role = None if node.type == START else check_type(node, STEP).payload["role"]
        if self._request.role not in {None, role}:
            return
        # A branch's prompt and a join's contents repeat other nodes.
        copied = "entry" if node.type == START else "branches"
        if copied in node.payload or self._repeats_prompt(node, tip):
            # Branches that are here are searched by themselves.
            joined = node.payload.get("branches", ()) if node.type != START else ()
            for head in filter(None, map(find_reference, joined)):
                record = tip.record._replace(node=head, depth=depth)
                self._behind.append(_Stretch(thread, tip._replace(record=record), is_joined=True))
            return
        for field, text in _texts(node, tip):
            found = find_in(self._request.pattern, text, self._request.secrets)
            if found is not None:
                yield {
                    "thread": thread,
                    "step": depth,
                    "role": role,
                    "field": field,
                    "excerpt": found.excerpt,
                    "hits": found.hits,
                }

    def _repeats_prompt(self, node: Node, tip: Snapshot) -> bool:
        """Check for a workflow within a workflow that was given the prompt of its thread."""
        if node.type != START or "parent" not in node.payload or self._request.workflow:
            # Of one workflow its thread may not be searched.
            return False
        start = (read_trunk(self._store, tip) or tip).get_start()
        return start.hash != node.hash and bool(start.payload["prompt"] == node.payload["prompt"])


def _begins_thread(node: Node) -> bool:
    return node.type == START and "parent" not in node.payload


def _texts(node: Node, tip: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield the texts of a node, each with the name of its place."""
    if node.type == START:
        yield "prompt", node.payload["prompt"]
        return
    for path, text in walk_texts(node.payload["meta"]):
        yield render_path(("meta", *path)), text
    yield "content", get_text(tip, node.payload.get("content"))


def _count_shared(store: Store, tip: Snapshot) -> tuple[int | None, Oid]:
    """Return how many steps a fork still shares (None: no fork), and its own first commit."""
    fewest = tip.record.depth
    for snapshot in walk_history(store, tip.commit.oid):
        fewest = min(fewest, snapshot.record.depth)
    return (fewest if snapshot.record.event == "fork" else None), snapshot.commit.oid
