"""What all routes share: the store's place, the masks, the changes, what is kept meanwhile."""

import asyncio
import secrets
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from uwf_git.commands.agent_run.runs import stamp_work
from uwf_git.commands.control.answer import read_question
from uwf_git.commands.inspect.context import get_context, render_prompt, tell_given
from uwf_git.commands.inspect.graph import picture_thread, view_present
from uwf_git.commands.inspect.list import count_rows, name_damage
from uwf_git.commands.inspect.logs import LogReader, LogRequest
from uwf_git.commands.inspect.overview import Overview
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.inspect.story import (
    CONTENT_BYTES,
    Mask,
    StoryReader,
    Telling,
    add_up,
    cut_text,
    find_problems,
    mask_json,
    walk_entries,
)
from uwf_git.commands.start import Here
from uwf_git.commands.turn.choose_agent import read_played
from uwf_git.debug_log import debug
from uwf_git.engine.form import list_questions
from uwf_git.engine.picture.draw import lay_out, make_plan, render_svg
from uwf_git.engine.picture.plan import Subject
from uwf_git.errors import Conflict, Refused, StoreDamaged, UwfError
from uwf_git.library.values import Place
from uwf_git.model.event_rules import may_follow
from uwf_git.model.limits import count_tokens, find_cost
from uwf_git.model.names import Oid, ThreadId
from uwf_git.model.text import first_line, name_store, quote_path
from uwf_git.model.thread import ENDED
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.store import Store, check_exists
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, Head, find_head
from uwf_git.store.threads.history import read_snapshot
from uwf_git.store.threads.naming import resolve_head
from uwf_git.store.threads.watch import RefWatch
from uwf_git.web.entries import (
    list_proofs,
    render_compared,
    render_excerpt,
    render_markdown,
    render_value,
    tell_error,
)
from uwf_git.web.ui.answers import Asked, Exact, Html, Picture

# The logs that pages show now: read on while somebody asks for them, and forgotten after.

_FIRST = 500
_MOST_KEPT = 5_000
_MOST_SENT = 2_000
_LONGEST_LINE = 4_000
_PATIENCE_S = 30.0
_MOST_LOGS = 16


class _Line(NamedTuple):
    number: int
    source: str
    text: str


class _LiveLog:
    def __init__(self, store: Store, thread: ThreadId, environ: Mapping[str, str]) -> None:
        self._reader = LogReader(store, LogRequest(thread, _FIRST + 1, environ))
        self._lines: deque[_Line] = deque(maxlen=_MOST_KEPT)
        self.following = 1
        self.asked_at = time.monotonic()
        self.read_on()
        # One more than is shown was asked for, to know whether there is more.
        if len(self._lines) > _FIRST:
            self._lines.popleft()

    def read_on(self) -> None:
        """Read what came since the last call."""
        for piece in self._reader.read_new():
            for line in piece.lines:
                self._lines.append(_Line(self.following, piece.source, line[:_LONGEST_LINE]))
                self.following += 1

    def view(self, after: int) -> dict[str, Any]:
        """Return the last lines from number *after* on."""
        self.asked_at = time.monotonic()
        shown = [each for each in self._lines if each.number >= after][-_MOST_SENT:]
        return {
            "lines": [{"n": n, "source": source, "text": text} for n, source, text in shown],
            "next": self.following,
            "isRunning": not self._reader.is_over(),
            "isCut": bool(shown) and shown[0].number > max(after, 1),
        }

    def close(self) -> None:
        self._reader.close()


class LiveLogs:
    """The logs that were asked for in the last half minute; several threads may ask."""

    def __init__(self, open_store: Callable[[], Store], environ: Mapping[str, str]) -> None:
        self._open_store, self._environ = open_store, environ
        self._logs: dict[ThreadId, _LiveLog] = {}
        self._lock = threading.Lock()

    def read(self, thread: ThreadId, after: int) -> dict[str, Any]:
        """Return the lines of *thread* from number *after* on; 0: the last lines."""
        with self._lock:
            log = self._logs.get(thread)
            if log is None:
                log = _LiveLog(self._open_store(), thread, self._environ)
                self._logs[thread] = log
                for oldest in list(self._logs)[:-_MOST_LOGS]:
                    self._logs.pop(oldest).close()
            log.read_on()
            return log.view(after)

    def read_on(self) -> dict[ThreadId, int]:
        """Read all of them on; return the number of the line that comes next in each."""
        with self._lock:
            for thread, log in list(self._logs.items()):
                problem = _read_on(log)
                if problem is not None:
                    debug("5Q2D8XJR", "a log is let go", thread=thread, problem=problem)
                    self._logs.pop(thread).close()
            return {thread: log.following for thread, log in self._logs.items()}


def _read_on(log: _LiveLog) -> str | None:
    """Read *log* on; return why it is let go, or None."""
    if time.monotonic() - log.asked_at > _PATIENCE_S:
        return "nobody looks at it any more"
    try:
        log.read_on()
    except (UwfError, OSError) as error:
        return str(error)
    return None


# The events of the threads that were looked at last, kept while their tips stay.

_STORIES_MOST_KEPT = 6

Entries = list[dict[str, Any]]


class _Kept(NamedTuple):
    entries: Entries
    tips: dict[ThreadId, Oid | None]


class Stories:
    """The entries of some threads; several Python threads may ask."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._kept: dict[ThreadId, _Kept] = {}
        self._lock = threading.Lock()

    def read(self, store: Store, head: Head) -> Entries:
        """Return the entries of the thread of *head*, oldest first."""
        with self._lock:
            # Tabs that ask at once wait for the first, and share what it has read.
            kept = self._kept.pop(head.thread, None)
            if kept is None or any(
                _find_tip(store, each) != tip for each, tip in kept.tips.items()
            ):
                kept = self._read_kept(store, head)
            self._kept[head.thread] = kept
            for oldest in list(self._kept)[:-_STORIES_MOST_KEPT]:
                del self._kept[oldest]
        return kept.entries

    def find(self, store: Store, head: Head, commit: str) -> dict[str, Any]:
        for entry in walk_entries(self.read(store, head)):
            if entry.get("commit") == commit:
                return entry
        raise Refused(
            f"thread {head.thread} has no event {commit[:40]!r}",
            code="no-such-entry",
            hint=f"`uwf thread read {head.thread}` shows its events",
            thread=head.thread,
        )

    def _read_kept(self, store: Store, head: Head) -> _Kept:
        reader = StoryReader(store, Telling(self._mask))
        entries = reader.read(head.thread, head.commit, through_forks=True)
        branches = {
            ThreadId(branch["thread"])
            for entry in walk_entries(entries)
            for branch in entry.get("branches", ())
        }
        tips = {each: _find_tip(store, each) for each in branches}
        return _Kept(entries, {**tips, head.thread: head.commit})


def _find_tip(store: Store, thread: ThreadId) -> Oid | None:
    head = find_head(store, thread)
    return None if head is None else head.commit


class Site(NamedTuple):
    place: Place
    new_thread_id: Callable[[], ThreadId]
    mask: Mask
    overview: Overview
    stories: Stories
    logs: LiveLogs
    read_at: Callable[[], str]
    """Returns the number of the newest change that was seen."""

    def open(self) -> Store:
        return self.place.open()

    def here(self, store: Store) -> Here:
        return Here(store, self.place.cwd, self.place.agent)


# Threads for what blocks: reading and writing the store.
#
# `uwf ui` ends by os._exit, without waiting for a call that still waits itself (for a killed
# agent, say).
# What such a call records is whole or not there, as after a crash.

Answer = TypeVar("Answer")


class Workers:
    """Some threads, and the calls that wait for one."""

    def __init__(self, count: int, *, most_waiting: int = 500) -> None:
        self._pool = ThreadPoolExecutor(count)
        self._free = threading.Semaphore(count + most_waiting)

    async def run(self, function: Callable[[], Answer]) -> Answer:
        if not self._free.acquire(blocking=False):
            raise Conflict(
                "the server has too much to do", code="too-busy", hint="try again in a moment"
            )
        work = self._pool.submit(function)
        # Whoever asked may be gone before: the thread is at work until it is done.
        work.add_done_callback(lambda _: self._free.release())
        return await asyncio.wrap_future(work)


# What changed in the store, for all open pages: one watch for the server, and a number a change.
#
# A page that comes back says which number it has seen. While no page is open nothing is looked at;
# the next page finds what changed.

_TICK_S = 0.1
_BEAT_S = 15.0
_LOOKS_A_STAMP = 5
_MOST_CHANGES = 1000
_MOST_TOLD = 1000
MOST_STREAMS = 32


class _Change(NamedTuple):
    number: int
    threads: frozenset[ThreadId]


class _Known(NamedTuple):
    number: int
    logs: dict[ThreadId, int]
    problem: str | None


class StoreLook:
    """Looks for what changed in a store since the last look; it reads no objects."""

    def __init__(self, store: Store) -> None:
        self._store, self._watch = store, RefWatch(store)
        self._heads: dict[ThreadId, Any] | None = None
        self._work: dict[ThreadId, tuple[object, ...]] = {}
        self._looks = 0

    def look(self) -> frozenset[ThreadId]:
        """Return the threads that have another tip, have gone, or are worked on otherwise."""
        check_exists(self._store)
        changed: set[ThreadId] = set()
        tips = self._watch.look()
        if tips is not None:
            # An archived thread may keep its commit.
            heads = {each: (oid, each in tips.ended) for each, oid in tips.heads.items()}
            before = heads if self._heads is None else self._heads
            changed |= {each for each, _tip in heads.items() ^ before.items()}
            self._heads = heads
        if self._looks % _LOOKS_A_STAMP == 0:
            work = stamp_work(self._store)
            changed |= {
                each for each in work.keys() | self._work.keys()
                if work.get(each) != self._work.get(each)
            }  # fmt: skip
            self._work = work
        self._looks += 1
        return frozenset(changed)


class Changes:
    """The changes that were seen, and the streams that tell them; it lives in the event loop."""

    def __init__(self, store: Store, list_logs: Callable[[], dict[ThreadId, int]]) -> None:
        """Create it; *list_logs* reads the logs that pages show, and returns their next lines."""
        self._store_look, self._list_logs = StoreLook(store), list_logs
        self._workers = Workers(1)
        self._start = secrets.token_hex(3)
        self._number = 0
        self._seen: deque[_Change] = deque(maxlen=_MOST_CHANGES)
        self._logs: dict[ThreadId, int] = {}
        self._problem: str | None = None
        self._changed = asyncio.Condition()
        self._open: list[object] = []
        self._watching: asyncio.Task[None] | None = None
        self.is_over = False

    @property
    def at(self) -> str:
        return f"{self._start}-{self._number}"

    async def close(self) -> None:
        self.is_over = True
        async with self._changed:
            self._changed.notify_all()

    async def follow(self, since: str | None) -> AsyncIterator[dict[str, Any]]:
        """Yield what changed after *since*, and what changes; it ends when the server does."""
        me = object()
        self._open.append(me)
        del self._open[:-MOST_STREAMS]
        async with self._changed:
            self._changed.notify_all()
        try:
            await self._look()
            number = self._find_number(since)
            # Before anything is told: what changes while it is sent comes after it.
            told = _Known(self._number if number is None else number, {}, None)
            self._watch()
            yield {"type": "hello", "at": self.at, "reset": number is None}
            while not self.is_over and me in self._open:
                now = self._known
                for line in self._tell(told):
                    yield line
                told = now
                if not await self._wait(me, told):
                    yield {"type": "beat"}
            yield {"type": "bye"}
        finally:
            if me in self._open:
                self._open.remove(me)

    @property
    def _known(self) -> _Known:
        return _Known(self._number, self._logs, self._problem)

    async def _wait(self, me: object, told: _Known) -> bool:
        """Wait until there is something to tell; return whether there is."""

        def has_news() -> bool:
            return self.is_over or me not in self._open or told != self._known

        async with self._changed:
            try:
                await asyncio.wait_for(self._changed.wait_for(has_news), _BEAT_S)
            except TimeoutError:
                return False
        return True

    def _find_number(self, since: str | None) -> int | None:
        """Return the number of *since*; None if what came after it is not known."""
        start, _, number = (since or "").partition("-")
        if start != self._start or not number.isdecimal() or len(number) > 18:  # noqa: PLR2004 (no number grows longer)
            return None
        first = self._number - len(self._seen)
        return int(number) if first <= int(number) <= self._number else None

    def _tell(self, told: _Known) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = []
        threads = frozenset(
            thread for each in self._seen if each.number > told.number for thread in each.threads
        )
        if len(threads) > _MOST_TOLD:
            lines.append({"type": "threads", "at": self.at, "threads": [], "all": True})
        elif threads:
            lines.append({"type": "threads", "at": self.at, "threads": sorted(threads)})
        if self._problem != told.problem:
            lines.append({"type": "store", "problem": self._problem})
        for thread, following in self._logs.items():
            if told.logs.get(thread) != following:
                lines.append({"type": "log", "thread": thread, "next": following})
        return lines

    def _watch(self) -> None:
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._keep_looking())

    async def _keep_looking(self) -> None:
        while self._open and not self.is_over:
            await asyncio.sleep(_TICK_S)
            await self._look()

    async def _look(self) -> None:
        before = self._known
        try:
            threads, self._logs = await self._workers.run(
                lambda: (self._store_look.look(), self._list_logs())
            )
            self._problem = None
            if threads:
                self._number += 1
                self._seen.append(_Change(self._number, threads))
        except (UwfError, OSError) as error:
            # A store that was moved, or a broken packed-refs, may come back.
            self._problem = str(error)
            debug("3V7KQ0TD", "the store cannot be watched", problem=self._problem)
        if self._known == before:
            return
        async with self._changed:
            self._changed.notify_all()


# The views of one thread: its document, an event, the prompt of its turn, its question.

_COPIED = (
    "event", "commit", "thread", "title", "role", "depth", "time", "durationMs", "by", "agent",
    "status", "failedAttempts", "takenBack", "problem", "attempt", "files",
)  # fmt: skip
_TOP = 3
"""The level at which headings of foreign texts begin."""

_PARTS = (
    ("meta", "Meta"), ("content", "Content"), ("state", "State"), ("note", "Note"),
    ("changes", "Changes"), ("prompt", "Prompt"), ("log", "Log"),
)  # fmt: skip


def view_thread(site: Site, asked: Asked) -> dict[str, Any]:
    at, store = site.read_at(), site.open()
    head = resolve_head(store, asked.params["thread"])
    entries = site.stories.read(store, head)
    problems = [*find_problems(entries)]
    try:
        present = _view_present(site, store, head)
    except StoreDamaged as error:
        problems.insert(0, site.mask(error.message))
        present = {"status": name_damage(error), "title": f"Thread {head.thread}", "can": []}
    return {
        "thread": head.thread,
        "tip": head.commit,
        "ref": f"{ARCHIVE if head.archived else ACTIVE}{head.thread}",
        **present,
        "totals": add_up(entries),
        "problems": list(dict.fromkeys(problems)),
        "command": _here(store, f"uwf thread show {head.thread}"),
        "entries": [*map(_shorten, entries)],
        "at": at,
    }


_OF_WORK = ("role", "agent", "since", "lastOutput")


def _view_present(site: Site, store: Store, head: Head) -> dict[str, Any]:
    snapshot = read_snapshot(store, head.commit)
    workflow = parse_workflow(snapshot.get_node(snapshot.record.workflow))
    shown = view_present(store, head.thread, site.mask)
    told = show_thread(store, head.thread)
    running, prompt = told.get("running"), shown["prompt"]
    parent = shown.get("parentThread")
    return {
        "status": shown["status"],
        "branchStatus": told.get("branchStatus"),
        "workflow": shown["workflowName"],
        "title": shown["title"],
        "depth": shown["depth"],
        "said": shown["said"],
        "next": shown.get("next"),
        "started": shown["startTime"],
        "updated": shown["lastUpdateTime"],
        "ended": shown.get("endTime"),
        "limits": shown["limits"],
        "limitValues": told["limits"],
        "agents": shown["agents"],
        "roles": [*read_played(snapshot, workflow).roles],
        "prompt": {"html": Html(render_excerpt(_name_store(store, prompt), top=_TOP))},
        "state": {"html": Html(render_value(_name_store(store, shown["state"])))},
        **{name: shown.get(name) for name in ("reason", "by", "hint", "error", "waiting")},
        "running": running and {name: running[name] for name in _OF_WORK},
        "held": [
            {**each, "hint": name_store(each.get("hint", ""), store.path)}
            for each in shown.get("heldBy", [])
        ],
        "parent": parent and {"thread": parent, "isBranch": "branchOf" in shown},
        "children": _list_children(site, store, head, told),
        "directory": told["workdir"],
        "can": _list_controls(store, head, told, is_running=bool(running)),
    }


def _list_children(
    site: Site, store: Store, head: Head, told: dict[str, Any]
) -> list[dict[str, Any]]:
    branches = [
        {
            "thread": each["thread"],
            "title": each.get("said"),
            "label": f"{each['number']} {each['label']}",
            "status": each["status"],
            "isBranch": True,
        }
        for each in told.get("branches", [])
    ]
    known = {each["thread"] for each in branches}
    started = [
        {
            **{name: each[name] for name in ("thread", "title", "status")},
            "label": each["workflow"],
            "isBranch": False,
        }
        for each in site.overview.list_children(store, head.thread, until_ms=told["lastUpdateTime"])
        if each["thread"] not in known
    ]
    return [*mask_json(branches, site.mask), *started]


def _list_controls(
    store: Store, head: Head, told: dict[str, Any], *, is_running: bool
) -> list[str]:
    """Return the controls that the state allows; who asks for another is refused."""
    below = count_rows(told.get("branches", []))
    snapshot = read_snapshot(store, head.commit)
    status = snapshot.record.status
    if head.archived or status in ENDED:
        return ["fork"]
    waiting = snapshot.get_present().waiting
    waits_for_person = status == "waiting" and (waiting is None or waiting.until is None)
    may = {
        "pause": may_follow("pause", status),
        "interrupt": is_running,
        "resume": may_follow("resume", status) and not waits_for_person,
        "retry": status == "failed" or (status == "split" and "failed" in below),
        "poke": may_follow("poke", status) and snapshot.record.depth > 0 and not is_running,
        "kill": True,
        "fork": True,
        "patch": may_follow("patch", status),
        "amend": may_follow("amend", status),
        "answer": waits_for_person,
        "run": not is_running and (status == "ready" or (status == "split" and may_go_on(below))),
    }
    return [name for name, is_allowed in may.items() if is_allowed]


def may_go_on(below: Collection[str]) -> bool:
    """Tell whether branches in these statuses can go on: not if all need somebody."""
    return "ready" in below or not set(below) - ENDED


def _shorten(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry without its texts."""
    usage = entry.get("usage", {})
    short = {name: entry[name] for name in _COPIED if entry.get(name) is not None}
    short |= {
        "event": entry["event"],
        "started": entry.get("startedAt"),
        "tokens": count_tokens(usage) or None,
        "costUsd": find_cost(usage),
        "summary": _summarize(entry),
    }
    if "branches" in entry:
        short["branches"] = [
            {**branch, "entries": [*map(_shorten, branch.get("entries", ()))]}
            for branch in entry["branches"]
        ]
    return short


def _summarize(entry: dict[str, Any]) -> str | None:
    error = entry.get("error")
    return first_line(tell_error(error)) if isinstance(error, dict) else entry.get("said")


def view_entry(site: Site, asked: Asked) -> dict[str, Any]:
    store = site.open()
    head = resolve_head(store, asked.params["thread"])
    entry = site.stories.find(store, head, asked.params["commit"])
    compared = entry.get("compared")
    parts = [part for name, title in _PARTS if (part := _view_part(store, entry, name, title))]
    if compared is not None:
        differs = render_compared(compared) or "<p>It says the same as the visit before.</p>"
        parts.append({"name": "diff", "title": "Diff", "html": Html(differs)})
    return {
        "entry": _shorten(entry),
        "previous": None if compared is None else compared["commit"],
        "parts": parts,
        "commands": [
            {"what": what, "command": _here(store, command)}
            for what, command in list_proofs(entry).items()
        ],
    }


def _view_part(store: Store, entry: dict[str, Any], name: str, title: str) -> dict[str, Any] | None:
    part = _name_store(store, entry.get(name) or {})
    if not part:
        return None
    if name in {"meta", "state", "changes"}:
        html = render_value(part)
    else:
        html = render_excerpt(part, top=_TOP if name in {"content", "note"} else None)
    if not html:
        return None
    return {"name": name, "title": title, "html": Html(html)}


def _name_store(store: Store, excerpt: dict[str, Any]) -> dict[str, Any]:
    command = excerpt.get("command")
    return {**excerpt, "command": _here(store, command)} if command else excerpt


def _here(store: Store, command: str) -> str:
    """Return a command of git, uwf or json-cas so that it works in every directory."""
    program, _, words = command.partition(" ")
    option = "-C" if program == "git" else "--repo"
    return f"{program} {option} {quote_path(store.path)} {words}"


def view_prompt(site: Site, asked: Asked) -> dict[str, Any]:
    """Return the prompt of the turn that is next, or under way."""
    store = site.open()
    context = get_context(store, asked.params["thread"])
    command = f"uwf thread context {context['thread']} --prompt"
    excerpt = cut_text(render_prompt(context), site.mask, command, most=CONTENT_BYTES)
    role = context["role"]["name"]
    return {"role": role, "html": Html(render_excerpt(_name_store(store, excerpt)))}


def view_question(site: Site, asked: Asked) -> dict[str, Any]:
    store, place = site.open(), site.place
    found = read_question(store, place.caller, asked.params["thread"], default=place.agent)
    context = get_context(store, found.thread)
    role = context["role"]
    texts = (role["description"], role["systemPrompt"], tell_given(context))
    html = "".join(render_markdown(site.mask(each), top=_TOP) for each in texts)
    return {
        "thread": found.thread,
        "role": found.role,
        "html": Html(html),
        "fields": [line.strip().removeprefix("- ") for line in list_questions(found.schema)],
        "schema": Exact(found.schema),
        "question": Exact({"head": found.head, "role": found.role, "at": found.at}),
    }


def draw_thread(site: Site, asked: Asked) -> Picture:
    """Return the picture of a thread; with `whole` in the query, no branches are folded."""
    subject = picture_thread(site.open(), asked.params["thread"])
    return draw(site, subject, is_whole="whole" in asked.query)


def draw(site: Site, subject: Subject, *, is_whole: bool = False) -> Picture:
    """Return the picture of *subject*, masked, for the inside of a page."""
    svg = render_svg(lay_out(make_plan(subject, is_whole=is_whole)), stands_alone=False)
    return Picture(site.mask(svg))
