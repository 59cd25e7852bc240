"""The views of one thread: its document, an event, the prompt of its turn, its question."""

import shlex
from typing import Any

from uwf_git.commands.control.answer import read_question
from uwf_git.commands.inspect.context import get_context, render_prompt
from uwf_git.commands.inspect.graph import picture_thread, view_present
from uwf_git.commands.inspect.list import count_rows, name_damage
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.inspect.story import (
    CONTENT_BYTES,
    add_up,
    cut_text,
    find_problems,
    mask_json,
)
from uwf_git.commands.turn.bind_roles import read_played
from uwf_git.engine.form import list_questions
from uwf_git.engine.picture.draw import lay_out, make_plan, render_svg
from uwf_git.engine.picture.plan import Subject
from uwf_git.errors import StoreDamaged
from uwf_git.model.event_folds import first_line
from uwf_git.model.event_rules import may_follow
from uwf_git.model.limits import count_tokens, find_cost
from uwf_git.model.thread import ENDED
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, Head, resolve_head
from uwf_git.store.threads.snapshot import read_snapshot
from uwf_git.web.elements import json_fields
from uwf_git.web.entries import (
    list_proofs,
    render_compared,
    render_excerpt,
    render_markdown,
    render_value,
)
from uwf_git.web.ui.answers import Asked, Exact, Html, Picture
from uwf_git.web.ui.site import Site

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
    running = told.get("running")
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
        "prompt": _view_text(store, shown["prompt"]),
        "state": {"html": Html(render_value(shown["state"]))},
        **{name: shown.get(name) for name in ("reason", "by", "hint", "error", "waiting")},
        "running": running and {name: running[name] for name in _OF_WORK},
        "held": shown.get("heldBy", []),
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
    goes_on = "ready" in below or not set(below) - ENDED
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
        # Of branches that all need somebody, none can go on.
        "run": not is_running and (status == "ready" or (status == "split" and goes_on)),
    }
    return [name for name, is_allowed in may.items() if is_allowed]


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
    if isinstance(error, dict):
        return first_line(f"{error.get('kind', 'error')}: {error.get('message', '')}")
    return entry.get("said")


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
    part = entry.get(name)
    if not part:
        return None
    if name in {"meta", "state"}:
        html = render_value(part)
    elif name == "changes":
        html, part = json_fields(part), {}
    else:
        html = render_excerpt(part, top=_TOP if name in {"content", "note"} else None)
    if not html:
        return None
    return {"name": name, "title": title, "html": Html(html), **_view_size(store, part)}


def _view_text(store: Store, excerpt: dict[str, Any]) -> dict[str, Any]:
    return {"html": Html(render_excerpt(excerpt, top=_TOP)), **_view_size(store, excerpt)}


def _view_size(store: Store, excerpt: dict[str, Any]) -> dict[str, Any]:
    if "command" not in excerpt:
        return {}
    command = _here(store, excerpt["command"])
    return {"bytes": excerpt["bytes"], "isCut": excerpt["isCut"], "command": command}


def _here(store: Store, command: str) -> str:
    """Return a command of git, uwf or json-cas so that it works in every directory."""
    program, _, words = command.partition(" ")
    option = "-C" if program == "git" else "--repo"
    return f"{program} {option} {shlex.quote(store.path)} {words}"


def view_prompt(site: Site, asked: Asked) -> dict[str, Any]:
    """Return the prompt of the turn that is next, or under way."""
    store = site.open()
    context = get_context(store, asked.params["thread"])
    command = f"uwf thread context {context['thread']} --prompt"
    excerpt = cut_text(render_prompt(context), site.mask, command, most=CONTENT_BYTES)
    role = context["role"]["name"]
    return {"role": role, "html": Html(render_excerpt(excerpt)), **_view_size(store, excerpt)}


def view_question(site: Site, asked: Asked) -> dict[str, Any]:
    store, place = site.open(), site.place
    found = read_question(store, place.caller, asked.params["thread"], default=place.agent)
    context = get_context(store, found.thread)
    role = context["role"]
    texts = (role.get("description"), role.get("systemPrompt"), context.get("input"))
    html = "".join(
        render_markdown(site.mask(each), top=_TOP) for each in texts if isinstance(each, str)
    )
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
