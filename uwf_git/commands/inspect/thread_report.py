"""A thread as one document: how it stands, all that happened, event by event."""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from uwf_git.commands.inspect.excerpt import (
    ASIDE_BYTES,
    CONTENT_BYTES,
    Mask,
    cut_text,
    excerpt_diff,
    excerpt_json,
    excerpt_node,
    make_mask,
    mask_json,
)
from uwf_git.commands.inspect.graph import picture_thread
from uwf_git.commands.inspect.read import (
    CONTROL_EVENTS,
    describe_control,
    find_taken_back,
    joins_only,
    pair_joins,
    read_author,
    repeats_meta,
)
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.inspect.step_view import Commands, get_command, get_text
from uwf_git.commands.split.commits import find_container, label_branch
from uwf_git.commands.verify.signatures import SignatureReader
from uwf_git.engine.diff import diff_values, render_path
from uwf_git.engine.picture.plan import Subject
from uwf_git.errors import StoreDamaged, UwfError
from uwf_git.model.builtin import ATTEMPT, STEP
from uwf_git.model.event_rules import STEPS
from uwf_git.model.event_words import first_line
from uwf_git.model.limits import count_tokens, find_cost, render_limit
from uwf_git.model.names import ThreadId
from uwf_git.model.node import Node
from uwf_git.model.references import find_reference
from uwf_git.model.thread import Split
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, find_head, resolve_head
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.snapshot import Snapshot, get_typed, read_snapshot

# What happened to a thread, event by event, as documents: for a report, and for a page.
#
# What cannot be read is told in its place (``problem``), and the rest is there.

_MS = 1000
_COPIED = ("session", "rung", "exitCode")


class Visit(NamedTuple):
    """A step of a role, for the next one of that role to be compared with."""

    snapshot: Snapshot
    step: Node
    content: Node | None


class EntryReader:
    """Reads the events of a thread and of its branches; a thread is told once.

    Without *signatures* nothing is said of them.
    """

    def __init__(self, store: Store, mask: Mask, signatures: SignatureReader | None) -> None:
        self._store, self._mask, self._signatures = store, mask, signatures
        self._told: set[ThreadId] = set()

    def read(
        self, thread: ThreadId, tip: Oid, *, through_forks: bool = False
    ) -> list[dict[str, Any]]:
        """Return the events of *thread* up to *tip*, oldest first.

        With *through_forks* those from before a fork come first. Where the history is broken, the
        first entry is the problem.
        """
        self._told.add(thread)
        story: list[Snapshot] = []
        entries: list[dict[str, Any]] = []
        try:
            for snapshot in walk_history(self._store, tip, through_forks=through_forks):
                story.append(snapshot)  # noqa: PERF402 (what came before an error is kept)
        except UwfError as error:
            entries.append({"event": None, "problem": self._mask(error.message)})
        taken_back = set(find_taken_back(story))
        joins = dict(pair_joins(story))
        visits: dict[str, Visit] = {}
        failed = 0
        for snapshot in reversed(story):
            entry = self._view(snapshot, visits)
            event, oid = snapshot.record.event, snapshot.commit.oid
            failed += event == "attempt"
            if event in STEPS:
                entry["failedAttempts"] = failed
            if event in STEPS or event == "poke":
                failed = 0
            if oid in taken_back:
                entry["takenBack"] = True
            if event == "split":
                entry |= self._view_split(snapshot, joins.get(oid, ()))
            entries.append(entry)
        return entries

    def _view(self, snapshot: Snapshot, visits: dict[str, Visit]) -> dict[str, Any]:
        record = snapshot.record
        entry: dict[str, Any] = {
            "event": record.event,
            "commit": snapshot.commit.oid,
            "time": snapshot.commit.time_s * _MS,
            "by": self._mask(read_author(snapshot)),
            "thread": record.thread,
            "status": record.status,
            "depth": record.depth,
            "role": None if record.role is None else self._mask(record.role),
            "title": self._mask(_title(snapshot)),
            "said": self._mask(snapshot.subject.partition(": ")[2]),
            "note": self._view_note(snapshot),
        }
        if self._signatures is not None:
            entry["signature"] = mask_json(self._signatures.read(snapshot), self._mask)
        try:
            if record.event in STEPS:
                entry |= self._view_step(snapshot, visits)
            elif record.event == "attempt":
                entry |= self._view_attempt(snapshot)
            elif record.event in CONTROL_EVENTS:
                control = describe_control(snapshot, snapshot, Commands(snapshot), facts=())
                entry["title"] = self._mask(control.title)
                entry["changes"] = mask_json(control.meta, self._mask)
        except UwfError as error:
            entry["problem"] = self._mask(error.message)
        return entry

    def _view_note(self, snapshot: Snapshot) -> dict[str, Any] | None:
        """Return what people wrote into the commit."""
        # The body of an attempt is the end of its log, that of a split and a join its branches.
        if not snapshot.body or snapshot.record.event in {"attempt", "split", "join"}:
            return None
        command = f"git log -1 {snapshot.commit.oid}"
        return cut_text(snapshot.body, self._mask, command, most=ASIDE_BYTES)

    def _view_step(self, snapshot: Snapshot, visits: dict[str, Visit]) -> dict[str, Any]:
        step = get_typed(snapshot, snapshot.record.node, STEP)
        payload, mask = step.payload, self._mask
        view: dict[str, Any] = {
            "node": step.hash,
            "role": mask(payload["role"]),
            "meta": excerpt_json(snapshot, step, payload["meta"], mask),
            **self._view_work(snapshot, payload, step.timestamp),
            "content": excerpt_node(snapshot, payload["content"], mask, most=CONTENT_BYTES),
        }
        if "state" in payload:
            view["state"] = excerpt_json(snapshot, step, payload["state"], mask)
        if snapshot.record.event == "join":
            # Its branches have told what it counts.
            return view | ({"meta": None} if joins_only(payload["meta"]) else {})
        if "problem" in (view["content"] or {}):
            return view
        if repeats_meta(payload["meta"], get_text(snapshot, payload["content"])):
            view["content"] = None
        name = find_reference(payload["content"])
        visit = Visit(snapshot, step, None if name is None else snapshot.get_node(name))
        before = visits.get(payload["role"])
        if before is not None:
            view["compared"] = self._compare(before, visit)
        visits[payload["role"]] = visit
        return view

    def _view_work(
        self, snapshot: Snapshot, payload: dict[str, Any], recorded_ms: int
    ) -> dict[str, Any]:
        """Return what a step and an attempt have both: who worked, how long, and for what."""
        mask = self._mask
        usage = mask_json(payload.get("usage", {}), mask)
        return {
            "agent": mask(get_command(snapshot, payload.get("agent"))),
            "startedAt": payload.get("startedAt", recorded_ms),
            "durationMs": payload.get("durationMs"),
            # One that is nested deep is a text.
            "usage": usage if isinstance(usage, dict) else {"usage": usage},
            "prompt": excerpt_node(snapshot, payload.get("prompt"), mask),
            "trace": find_reference(payload.get("trace")),
            "log": excerpt_node(snapshot, payload.get("stderr"), mask),
            **{name: mask_json(payload[name], mask) for name in _COPIED if name in payload},
        }

    def _view_attempt(self, snapshot: Snapshot) -> dict[str, Any]:
        name = snapshot.get_present().last_attempt
        if name is None:
            return {}
        attempt = get_typed(snapshot, name, ATTEMPT)
        payload = attempt.payload
        return {
            "node": attempt.hash,
            "attempt": snapshot.record.attempt,
            "error": mask_json(payload["error"], self._mask),
            **self._view_work(snapshot, payload, attempt.timestamp),
            "content": excerpt_node(snapshot, payload.get("content"), self._mask),
        }

    def _compare(self, before: Visit, visit: Visit) -> dict[str, Any]:
        """Return what differs between two steps of a role."""
        changes = [
            {
                "kind": change.kind,
                "path": render_path(change.path),
                "before": change.before,
                "after": change.after,
            }
            for change in diff_values(before.step.payload["meta"], visit.step.payload["meta"])
        ]
        content = None
        if before.content is not None and visit.content is not None:
            content = excerpt_diff(
                (before.snapshot, before.content), (visit.snapshot, visit.content), self._mask
            )
        return {
            "commit": before.snapshot.commit.oid,
            "depth": before.snapshot.record.depth,
            "meta": excerpt_json(visit.snapshot, visit.step, changes, self._mask),
            "content": content,
        }

    def _view_split(self, split: Snapshot, ended: tuple[Oid, ...]) -> dict[str, Any]:
        try:
            found = split.get_present().split
            if found is None:
                return {}
            return {"branches": [*self._view_branches(split, found, ended)]}
        except UwfError as error:
            return {"problem": self._mask(error.message)}

    def _view_branches(
        self, split: Snapshot, found: Split, ended: tuple[Oid, ...]
    ) -> Iterator[dict[str, Any]]:
        """Yield the branches; those that were joined as they were then (*ended*)."""
        container = find_container(split, found.at)
        for number, child in enumerate(found.children):
            view: dict[str, Any] = {
                "number": number,
                "label": self._mask(label_branch(container, number)),
                "thread": child.thread,
            }
            if child.thread in self._told:
                yield {**view, "status": None, "problem": "it is told elsewhere in this report"}
                continue
            try:
                head = find_head(self._store, child.thread)
                tip = ended[number] if number < len(ended) else head and head.commit
                if tip is None:
                    yield {**view, "status": "ready", "depth": 0, "entries": []}
                    continue
                record = read_snapshot(self._store, tip).record
            except UwfError as error:
                yield {**view, "status": None, "problem": self._mask(error.message)}
                continue
            entries = self.read(child.thread, tip)
            yield {**view, "status": record.status, "depth": record.depth, "entries": entries}


def _title(snapshot: Snapshot) -> str:
    record = snapshot.record
    said = snapshot.subject.partition(": ")[2]
    if record.event == "join":
        return f"{record.depth}. {said}"
    if record.event in STEPS:
        return f"{record.depth}. {record.role}"
    if record.event == "attempt":
        return f"{record.role}: attempt {record.attempt} failed"
    if record.event == "start":
        return "Started"
    text = f"split: {said}" if record.event == "split" else said or record.event
    if record.event == "fork":
        text = f"forked {said}"
    return text[:1].upper() + text[1:]


# A thread as one document: how it stands, all that happened, what it cost, what is damaged.
#
# Plain values, keys masked: the report and the page are made of it. It has nothing of the machine
# but the thread's present, so the same store gives the same document.

_SHOWN = (
    "workflow", "workflowName", "status", "depth", "parentThread", "branchOf",
    "startTime", "lastUpdateTime", "endTime", "error", "attempts", "agents", "agentSettings",
    "state", "said", "next", "waiting", "question", "reason", "by", "hint", "heldBy", "diverged",
)  # fmt: skip
_ASKED = ("role", "description", "systemPrompt", "fields")
_PLAYED = {"step", "answer"}


_PARTS = {"branches", "entries", "content", "prompt", "log"}
"""The fields in which an entry may have problems."""


class ThreadReport(NamedTuple):
    """All that a report shows."""

    document: dict[str, Any]
    picture: Subject | None
    """None: the thread or its workflow cannot be read."""


def report_of_damage(thread: str, problems: list[str]) -> StoreDamaged:
    """Say that a report was made, and says what of the thread cannot be read."""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return StoreDamaged(
        f"the report of thread {thread} is not whole: {problems[0]}{more}",
        code="report-of-damage",
        hint=f"`uwf verify {thread}` checks all of it",
        thread=thread,
        problems=problems,
    )


def view_report(store: Store, text: str, environ: Mapping[str, str]) -> ThreadReport:
    """Return the report of the thread *text*; secrets in *environ* are masked.

    What cannot be read is in ``problems``, and in its place.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: *text* names no thread, or several.
    """
    head = resolve_head(store, text)
    mask = make_mask(environ)
    problems: list[str] = []
    present: dict[str, Any] = {}
    picture = None
    try:
        present = view_present(store, head.thread, mask)
        picture = picture_thread(store, head.thread)
    except UwfError as error:
        problems.append(mask(error.message))
    signatures = SignatureReader(store, environ)
    entries = EntryReader(store, mask, signatures).read(
        head.thread, head.commit, through_forks=True
    )
    problems += find_problems(entries)
    document = {
        "thread": head.thread,
        "ref": f"{ARCHIVE if head.archived else ACTIVE}{head.thread}",
        "commit": head.commit,
        **present,
        "totals": add_up(entries),
        "entries": entries,
        "signatureProblem": None if signatures.problem is None else mask(signatures.problem),
        "problems": list(dict.fromkeys(problems)),
    }
    return ThreadReport(document, picture)


def view_present(store: Store, thread: ThreadId, mask: Mask) -> dict[str, Any]:
    """Return how *thread* stands; it raises what ``show_thread`` raises."""
    shown = show_thread(store, thread)
    present = {name: mask_json(shown[name], mask) for name in _SHOWN if name in shown}
    commit = shown["commit"]
    text = str(shown["prompt"])
    present["title"] = mask(first_line(text))
    present["prompt"] = cut_text(text, mask, f"git show {commit}:start.json", most=CONTENT_BYTES)
    state = json.dumps(present["state"], ensure_ascii=False, indent=2)
    cut = cut_text(state, mask, f"git show {commit}:now.json", most=CONTENT_BYTES)
    present["state"] = cut if cut["isCut"] else {"value": present["state"]}
    asked = present.pop("question", None)
    if isinstance(asked, dict):
        present["question"] = {name: asked[name] for name in _ASKED if name in asked}
    limits = shown["limits"].items()
    return {**present, "limits": {name: render_limit(name, limit) for name, limit in limits}}


def walk_entries(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield *entries* and those of the branches in them, in the order of the report."""
    for entry in entries:
        yield entry
        for branch in entry.get("branches", ()):
            yield from walk_entries(branch.get("entries", []))


def add_up(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what *entries* took, with branches: of joins nothing, since branches have told it."""
    steps = taken_back = attempts = duration_ms = tokens = 0
    costs = []
    for entry in walk_entries(entries):
        steps += entry["event"] in _PLAYED
        taken_back += entry.get("takenBack", False)
        attempts += entry["event"] == "attempt"
        duration_ms += entry.get("durationMs") or 0
        tokens += count_tokens(entry.get("usage", {}))
        cost = find_cost(entry.get("usage", {}))
        costs += [] if cost is None else [cost]
    return {
        "steps": steps,
        "takenBack": taken_back,
        "failedAttempts": attempts,
        "durationMs": duration_ms,
        "tokens": tokens,
        "costUsd": min(sum(costs), sys.float_info.max) if costs else None,
    }


def find_problems(value: Any) -> Iterator[str]:
    """Yield what *value* says cannot be read."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += reversed(each)
        elif isinstance(each, dict):
            if isinstance(each.get("problem"), str):
                yield each["problem"]
            waiting += reversed([part for name, part in each.items() if name in _PARTS])
