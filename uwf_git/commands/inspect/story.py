"""The story of a thread: all that happened to it, event by event, as documents."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from uwf_git.commands.inspect.show import Commands, get_text, view_files
from uwf_git.commands.split import find_container, label_branch
from uwf_git.engine.diff import diff_texts, diff_values
from uwf_git.engine.masking import change_texts, find_secrets, mask, mask_keys
from uwf_git.errors import UwfError
from uwf_git.model.builtin import ATTEMPT, SIGNAL, STEP, TEXT, find_reference
from uwf_git.model.event_rules import STEPS, signal_of
from uwf_git.model.limits import count_tokens, find_cost, tell_limit
from uwf_git.model.names import Oid, ThreadId
from uwf_git.model.node import Node, render_path
from uwf_git.model.thread import Split
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head
from uwf_git.store.threads.history import Snapshot, get_typed, read_snapshot, walk_history

# Texts of a thread as reports show them: keys masked, long ones cut, and how git prints the
# whole.
#
# An excerpt is a document: ``text``, ``bytes`` (of the whole), ``isCut``, if so ``isLog``, and the
# git ``command``; or a ``problem``, if the node cannot be read.

CONTENT_BYTES = 64 * 1024
"""How much is shown of what an agent answered."""

ASIDE_BYTES = 8 * 1024
"""How much is shown of what is beside an answer: prompts, logs, notes."""

_DIFF_BYTES = 4 * 1024
_MARGIN = 16 * 1024
"""More characters than any key has."""

Mask: TypeAlias = Callable[[str], str]


def make_mask(environ: Mapping[str, str]) -> Mask:
    """Return what masks keys as logs and events do: those in *environ*, and all of their shape."""
    secrets = find_secrets(environ)
    return lambda text: mask_keys(mask(text, secrets))


def mask_json(value: Any, mask: Mask) -> Any:
    """Return a JSON value with all its texts masked; a deeply nested value as its JSON text."""
    try:
        return change_texts(value, mask)
    except RecursionError:
        return mask(json.dumps(value, ensure_ascii=False))


def excerpt_json(snapshot: Snapshot, node: Node, value: Any, mask: Mask) -> dict[str, Any]:
    """Return a value of *node* as ``value``; if it is too long, an excerpt of its text."""
    masked = mask_json(value, mask)
    text = json.dumps(masked, ensure_ascii=False)
    found = cut_text(text, mask, f"git show {place_in_git(snapshot, node)}", most=CONTENT_BYTES)
    return found if found["isCut"] else {"value": masked}


def cut_text(
    text: str, mask: Mask, command: str, *, most: int, is_log: bool = False
) -> dict[str, Any]:
    """Return the excerpt of *text*, masked: its first *most* bytes of UTF-8, of a log its last."""
    size = len(text.encode(errors="surrogatepass"))
    if size <= most:
        return {"text": mask(text), "bytes": size, "isCut": False, "command": command}
    # A key that is cut in two is found in neither half: what may be half of a key is not shown.
    near = most + _MARGIN
    shown = mask(text[-near:] if is_log else text[:near])
    if len(text) > near:
        shown = shown[_MARGIN:] if is_log else shown[:-_MARGIN]
    whole = shown.encode(errors="replace")
    cut = (whole[-most:] if is_log else whole[:most]).decode(errors="ignore")
    return {"text": cut, "bytes": size, "isCut": True, "isLog": is_log, "command": command}


def place_in_git(snapshot: Snapshot, node: Node) -> str:
    suffix = "md" if node.type == TEXT else "json"
    first, second, rest = node.hash[0], node.hash[1], node.hash[2:]
    return f"{snapshot.commit.oid}:nodes/{first}/{second}/{rest}.{suffix}"


Entry = dict[str, Any]
"""An event: ``event``, ``commit``, ``time`` (ms), ``by``, ``thread``, ``status``, ``depth``,
``role``, ``title``, ``said`` and ``note``; and what only some events have. A split has
``branches``, each with its own ``entries``. ``problem`` says what cannot be read.
"""

CONTROL_TITLES = {
    "pause": "Paused",
    "resume": "Resumed",
    "retry": "To be tried again",
    "patch": "State changed by hand",
    "amend": "Rules changed",
    "poke": "Newest step taken back",
    "wait": "Waits for a person",
}
"""The events that change how a thread goes on."""

_COPIED = ("session", "rung", "exitCode")
_PLAYED = {"step", "answer"}

_PARTS = {"branches", "entries", "content", "prompt", "log"}


class Telling(NamedTuple):
    mask: Mask = str
    read_signature: Callable[[Snapshot], Mapping[str, Any]] | None = None
    """Without it nothing is said of signatures."""

    is_whole: bool = False
    """Whether texts are whole, and what cannot be read is raised.

    If not, long texts are cut and damage is described in its place; and steps have their prompts,
    their changes of the state, and what differs from the visit before.
    """

    has_logs: bool = True
    """Whether steps have their logs; failed attempts always have logs."""


class _Visit(NamedTuple):
    """A step of a role, to compare the role's next step with."""

    snapshot: Snapshot
    step: Node
    content: Node | None


class StoryReader:
    """Reads the events of a thread and of its branches; each thread is read once."""

    def __init__(self, store: Store, telling: Telling) -> None:
        self._store, self._telling, self._mask = store, telling, telling.mask
        self._told: set[ThreadId] = set()

    def read(self, thread: ThreadId, tip: Oid, *, through_forks: bool = False) -> list[Entry]:
        """Return all that ``walk`` yields, with lists of branches and of their entries."""
        return _list_entries(self.walk(thread, tip, through_forks=through_forks))

    def walk(
        self, thread: ThreadId, tip: Oid, *, through_forks: bool = False, last: int | None = None
    ) -> Iterator[Entry]:
        """Yield the events of *thread* up to *tip*, oldest first, each read when it is yielded.

        With *through_forks* the events from before a fork come first; with *last* only so many
        events, without the start. Where the history is broken, the first entry is the problem.
        """
        self._told.add(thread)
        story: list[Snapshot] = []
        older: list[Snapshot] = []
        problem: str | None = None
        history = walk_history(self._store, tip, through_forks=through_forks)
        try:
            if last is None:
                # What came before an error is kept.
                story += history
            else:
                story += islice((each for each in history if each.record.event != "start"), last)
                # The oldest step may have failed attempts that are not shown.
                for snapshot in history:
                    older.append(snapshot)
                    if _ends_attempts(snapshot):
                        break
        except UwfError as error:
            problem = self._tell_problem(error)
        return self._walk_story(story, older, problem)

    def _walk_story(
        self, story: list[Snapshot], older: list[Snapshot], problem: str | None
    ) -> Iterator[Entry]:
        """Yield the entries of *story*; both are newest first, and *story* is emptied."""
        if problem is not None:
            yield {"event": None, "problem": problem}
        failed = {step.commit.oid: count for step, count in count_failed([*story, *older])}
        named = [each.record.files for each in story if each.record.files is not None]
        files = view_files(self._store, story[0].record.thread, named) if named else {}
        # The newest commit has all nodes of the thread: there each folder is read once.
        tip_of_nodes = story[0] if story and self._telling.is_whole else None
        taken_back = set(_find_taken_back(story))
        joins = dict(_pair_joins(story))
        visits: dict[str, _Visit] = {}
        before = older[0] if older else None
        while story:
            snapshot = story.pop()
            entry = self._view(snapshot, before, tip_of_nodes or snapshot, visits)
            before = snapshot
            oid = snapshot.commit.oid
            if snapshot.record.files is not None:
                entry["files"] = files[snapshot.record.files]
            if oid in failed:
                entry["failedAttempts"] = failed[oid]
            if oid in taken_back:
                entry["takenBack"] = True
            if oid in joins:
                try:
                    if found := snapshot.get_present().split:
                        entry["branches"] = self._view_branches(snapshot, found, joins[oid])
                except UwfError as error:
                    entry["problem"] = self._tell_problem(error)
            yield entry

    def _tell_problem(self, error: UwfError) -> str:
        """Describe what cannot be read, for its place; raise it if all is shown whole."""
        if self._telling.is_whole:
            raise error
        return self._mask(error.message)

    def _view(
        self,
        snapshot: Snapshot,
        before: Snapshot | None,
        holder: Snapshot,
        visits: dict[str, _Visit],
    ) -> Entry:
        """Return the entry of a commit that follows *before*; *holder* has its nodes."""
        record = snapshot.record
        author = snapshot.commit.author.decode(errors="replace").partition(" <")[0]
        entry: Entry = {
            "event": record.event,
            "commit": snapshot.commit.oid,
            "time": snapshot.commit.time_s * 1000,
            "by": "" if author == "unknown" else self._mask(author),
            "thread": record.thread,
            "status": record.status,
            "depth": record.depth,
            "role": None if record.role is None else self._mask(record.role),
            "title": self._mask(_make_title(snapshot)),
            "said": self._mask(snapshot.subject.partition(": ")[2]),
            "note": self._view_note(snapshot),
        }
        if self._telling.read_signature is not None:
            entry["signature"] = mask_json(self._telling.read_signature(snapshot), self._mask)
        try:
            if record.event in STEPS:
                entry |= self._view_step(snapshot, holder, visits)
                entry["try"] = _describe_try(snapshot, before)
            elif record.event == "attempt":
                entry |= self._view_attempt(snapshot, holder)
            elif record.event in CONTROL_TITLES:
                entry["changes"] = self._view_changes(snapshot, holder)
        except UwfError as error:
            entry["problem"] = self._tell_problem(error)
        return entry

    def _view_note(self, snapshot: Snapshot) -> dict[str, Any] | None:
        # The body of an attempt is the end of its log, the body of a split and a join its branches.
        if not snapshot.body or snapshot.record.event in {"attempt", "split", "join"}:
            return None
        if self._telling.is_whole:
            return {"text": snapshot.body}
        command = f"git log -1 {snapshot.commit.oid}"
        return cut_text(snapshot.body, self._mask, command, most=ASIDE_BYTES)

    def _excerpt(
        self, snapshot: Snapshot, ref: Any, most: int = ASIDE_BYTES, *, is_log: bool = False
    ) -> Any:
        if self._telling.is_whole:
            return {"text": get_text(snapshot, ref)}
        name = find_reference(ref)
        if name is None:
            return None
        try:
            node = snapshot.get_node(name)
        except UwfError as error:
            return {"problem": self._mask(error.message)}
        command = f"git show {place_in_git(snapshot, node)}"
        return cut_text(str(node.payload), self._mask, command, most=most, is_log=is_log)

    def _excerpt_json(self, snapshot: Snapshot, node: Node, value: Any) -> dict[str, Any]:
        if self._telling.is_whole:
            return {"value": value}
        return excerpt_json(snapshot, node, value, self._mask)

    def _view_step(self, snapshot: Snapshot, holder: Snapshot, visits: dict[str, _Visit]) -> Entry:
        step = get_typed(holder, snapshot.record.node, STEP)
        payload, telling = step.payload, self._telling
        view: Entry = {
            "node": step.hash,
            "role": self._mask(payload["role"]),
            "meta": self._excerpt_json(holder, step, payload["meta"]),
            **self._view_work(holder, payload, step.timestamp, has_log=telling.has_logs),
            "content": self._excerpt(holder, payload["content"], CONTENT_BYTES),
        }
        if "state" in payload and not telling.is_whole:
            view["state"] = self._excerpt_json(holder, step, payload["state"])
        if snapshot.record.event == "join":
            # The workflow of a role has been a step of that role as well.
            view["isVisit"] = snapshot.get_present().at is None
            # Its branches have told what it counts; other meta is the result of a workflow.
            counts_only = isinstance(payload["meta"], dict) and set(payload["meta"]) == {"branches"}
            return view | ({"meta": None} if counts_only else {})
        if "problem" in (view["content"] or {}):
            return view
        if _repeats_meta(payload["meta"], get_text(holder, payload["content"])):
            view["content"] = None
        if telling.is_whole:
            return view
        name = find_reference(payload["content"])
        visit = _Visit(snapshot, step, None if name is None else snapshot.get_node(name))
        before = visits.get(payload["role"])
        if before is not None:
            view["compared"] = self._compare(before, visit)
        visits[payload["role"]] = visit
        return view

    def _view_work(
        self, snapshot: Snapshot, payload: dict[str, Any], recorded_ms: int, *, has_log: bool
    ) -> Entry:
        """Return what a step and an attempt have both: who worked, how long, and for what."""
        mask = self._mask
        usage = mask_json(payload.get("usage", {}), mask)
        view = {
            "agent": mask(Commands(snapshot).get(payload.get("agent"))),
            "startedAt": payload.get("startedAt", recorded_ms),
            "durationMs": payload.get("durationMs"),
            # One that is nested deep is a text.
            "usage": usage if isinstance(usage, dict) else {"usage": usage},
            "trace": find_reference(payload.get("trace")),
            **{name: mask_json(payload[name], mask) for name in _COPIED if name in payload},
        }
        if not self._telling.is_whole:
            view["prompt"] = self._excerpt(snapshot, payload.get("prompt"))
        if has_log:
            view["log"] = self._excerpt(snapshot, payload.get("stderr"), is_log=True)
        return view

    def _view_attempt(self, snapshot: Snapshot, holder: Snapshot) -> Entry:
        name = snapshot.get_present().last_attempt
        if name is None:
            return {}
        attempt = get_typed(holder, name, ATTEMPT)
        payload = attempt.payload
        return {
            "node": attempt.hash,
            "attempt": snapshot.record.attempt,
            "error": mask_json(payload["error"], self._mask),
            **self._view_work(holder, payload, attempt.timestamp, has_log=True),
            "content": self._excerpt(holder, payload.get("content")),
        }

    def _view_changes(self, snapshot: Snapshot, holder: Snapshot) -> dict[str, Any] | None:
        """Return what a signal changes, by the names that people type, or None."""
        cause = signal_of(snapshot.record)
        if cause is None:
            return None
        node = get_typed(holder, cause, SIGNAL)
        signal = node.payload
        view: dict[str, Any] = dict(signal.get("patch", {}))
        workflow = find_reference(signal.get("workflow"))
        if workflow is not None:
            view["workflow"] = f"{snapshot.record.workflow_name} {workflow}"
        commands = Commands(holder)
        for role, agent in signal.get("agentBinding", {}).items():
            view[f"agent of {role}"] = commands.describe(agent)
        limits = signal.get("limits", {})
        view |= {name: tell_limit(name, value) for name, value in limits.items()}
        return self._excerpt_json(holder, node, view)

    def _compare(self, before: _Visit, visit: _Visit) -> dict[str, Any]:
        """Return what differs between two steps of a role."""
        metas = (each.step.payload["meta"] for each in (before, visit))
        changes = [
            {**change._asdict(), "path": render_path(change.path)} for change in diff_values(*metas)
        ]
        content, one, other = None, before.content, visit.content
        told = (
            one and other and diff_texts(*(self._mask(str(each.payload)) for each in (one, other)))
        )
        if one is not None and other is not None and told:
            places = place_in_git(before.snapshot, one), place_in_git(visit.snapshot, other)
            # The names of the two sides stand above.
            hunks = told.split("\n", 2)[2]
            command = f"git diff {' '.join(places)}"
            content = cut_text(hunks, self._mask, command, most=_DIFF_BYTES)
        return {
            "commit": before.snapshot.commit.oid,
            "depth": before.snapshot.record.depth,
            "meta": self._excerpt_json(visit.snapshot, visit.step, changes),
            "content": content,
        }

    def _view_branches(
        self, split: Snapshot, found: Split, ended: tuple[Oid, ...]
    ) -> Iterator[dict[str, Any]]:
        """Yield the branches; branches that were joined as they were then (*ended*)."""
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
                snapshot = read_snapshot(self._store, tip)
                record = snapshot.record
                view["label"] = self._mask(label_branch(container, number, snapshot))
            except UwfError as error:
                yield {**view, "status": None, "problem": self._tell_problem(error)}
                continue
            entries = self.walk(child.thread, tip)
            yield {**view, "status": record.status, "depth": record.depth, "entries": entries}


def _describe_try(snapshot: Snapshot, before: Snapshot | None) -> str:
    """Describe which try a step belongs to, and its verdict; "" if nobody verifies the step."""
    at = snapshot.record.at
    if at is None or before is None or snapshot.record.event == "join":
        return ""
    now, then = snapshot.get_present(), before.get_present().tried
    if then is not None and then.at == at and then.is_verdict:
        is_accepted = now.at == at and now.tried is None
        return f"try {then.number} {'accepted' if is_accepted else 'rejected'}"
    tried = now.tried
    return f"try {tried.number}" if tried is not None and tried.at == at else ""


def _list_entries(entries: Iterable[Entry]) -> list[Entry]:
    listed = []
    for entry in entries:
        if "branches" in entry:
            entry["branches"] = [
                {**branch, "entries": _list_entries(branch.get("entries", ()))}
                for branch in entry["branches"]
            ]
        listed.append(entry)
    return listed


def count_failed(history: Iterable[Snapshot]) -> Iterator[tuple[Snapshot, int]]:
    """Yield each step of *history* (newest first), and how many attempts failed after a poke."""
    step: Snapshot | None = None
    count = 0
    for snapshot in history:
        count += snapshot.record.event == "attempt"
        if _ends_attempts(snapshot):
            if step is not None:
                yield step, count
            step = snapshot if snapshot.record.event in STEPS else None
            count = 0
    if step is not None:
        yield step, count


def _ends_attempts(snapshot: Snapshot) -> bool:
    return snapshot.record.event in STEPS or snapshot.record.event == "poke"


def _pair_joins(story: list[Snapshot]) -> Iterator[tuple[Oid, tuple[Oid, ...]]]:
    """Yield each split of *story* (newest first) with the commits at which its branches ended.

    The branches of a split that a fork has left are another thread's.
    """
    ended: tuple[Oid, ...] | None = ()
    for snapshot in story:
        if snapshot.record.event == "join":
            ended = snapshot.commit.parents[1:]
        elif snapshot.record.event == "fork":
            ended = None
        elif snapshot.record.event == "split":
            if ended is not None:
                yield snapshot.commit.oid, ended
            ended = ()


def _find_taken_back(story: list[Snapshot]) -> Iterator[Oid]:
    """Yield the commits of the steps that a later poke took back; *story* is newest first."""
    pokes = 0
    for snapshot in story:
        event = snapshot.record.event
        pokes += event == "poke"
        if event in STEPS and pokes:
            pokes -= 1
            yield snapshot.commit.oid


def _make_title(snapshot: Snapshot) -> str:
    record = snapshot.record
    said = snapshot.subject.partition(": ")[2]
    if record.event in CONTROL_TITLES:
        title = CONTROL_TITLES[record.event]
        return title if record.role is None else f"{record.role}: {title[0].lower()}{title[1:]}"
    if record.event == "join":
        return f"{record.depth}. {said}"
    if record.event in STEPS:
        return f"{record.depth}. {record.role}"
    if record.event == "attempt":
        return f"{record.role}: attempt {record.attempt} failed"
    if record.event == "start":
        return "Started"
    words = {"split": f"split: {said}", "fork": f"forked {said}"}
    text = words.get(record.event, said or record.event)
    return text[:1].upper() + text[1:]


def _repeats_meta(meta: Any, content: str) -> bool:
    if not content.lstrip().startswith("{"):
        return False
    with suppress(ValueError, RecursionError):
        return json.loads(content) in (meta, {"meta": meta})
    return False


def walk_entries(entries: list[Entry]) -> Iterator[Entry]:
    """Yield *entries* and the entries of the branches in them, in the order of the story."""
    for entry in entries:
        yield entry
        for branch in entry.get("branches", ()):
            yield from walk_entries(branch.get("entries", []))


def add_up(entries: list[Entry]) -> dict[str, Any]:
    """Return what *entries* took, with branches; joins spend nothing, as their branches do."""
    steps = taken_back = attempts = duration_ms = tokens = 0
    costs = []
    for entry in walk_entries(entries):
        steps += entry["event"] in _PLAYED or entry.get("isVisit", False)
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
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += reversed(each)
        elif isinstance(each, dict):
            if isinstance(each.get("problem"), str):
                yield each["problem"]
            waiting += reversed([part for name, part in each.items() if name in _PARTS])
