"""The table of what the server answers: the one list that the application and its tests read."""

import re
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

from uwf_git.commands.inspect.overview import SHOWN, Wanted
from uwf_git.store.threads.heads import resolve_thread
from uwf_git.web.ui.answers import Asked, Created, Picture, bad_body
from uwf_git.web.ui.controls import CONTROLS, check_answer, control_thread
from uwf_git.web.ui.creating import (
    draw_workflow,
    list_registered,
    start_new,
    view_workflow,
)
from uwf_git.web.ui.drafts import begin_draft, draw_draft, put_draft, view_draft
from uwf_git.web.ui.offered import list_agents
from uwf_git.web.ui.site import Site
from uwf_git.web.ui.thread_view import (
    draw_thread,
    view_entry,
    view_prompt,
    view_question,
    view_thread,
)

Answer = dict[str, Any] | Created | Picture
_MOST_DIGITS = 9
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")


class Route(NamedTuple):
    method: str
    path: str
    """With the names of its parts in braces."""

    answer: Callable[[Site, Asked], Answer]
    query: Sequence[str] = ()


def view_about(site: Site, _asked: Asked) -> dict[str, Any]:
    return {
        "version": version("uwf"),
        "store": site.place.path,
        "directory": site.place.cwd,
        "at": site.read_at(),
    }


def list_threads(site: Site, asked: Asked) -> dict[str, Any]:
    """List the threads in groups, at most 100 at a time."""
    query, at = asked.query, site.read_at()
    show = query.get("show", "active")
    if show not in SHOWN:
        raise bad_body("show", f"one of {', '.join(SHOWN)} is needed")
    within, cost = _take_number(query, "within"), _take_number(query, "cost")
    wanted = Wanted(
        show,
        query.get("workflow") or None,
        query.get("search", ""),
        status=query.get("status") or None,
        since_ms=None if within is None else int(site.place.now_ms() - within),
        least_cost=cost,
        after=query.get("after") or None,
    )
    return {**site.overview.read(site.open(), wanted), "at": at}


def _take_number(query: Mapping[str, str], name: str) -> float | None:
    text = query.get(name)
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise bad_body(name, "a number is needed")
    return float(text)


def read_log(site: Site, asked: Asked) -> dict[str, Any]:
    after = asked.query.get("after", "0")
    if not after.isdecimal() or len(after) > _MOST_DIGITS:
        raise bad_body("after", "the number of a line is needed")
    return site.logs.read(resolve_thread(site.open(), asked.params["thread"]), int(after))


FILTERS = ("show", "workflow", "search", "status", "within", "cost", "after")
"""Names in the query of the list: `within` so many milliseconds it changed, `cost` at least."""

_THREAD = "/api/threads/{thread}"

ROUTES: Sequence[Route] = (
    Route("GET", "/api/about", view_about),
    Route("GET", "/api/threads", list_threads, FILTERS),
    Route("GET", _THREAD, view_thread),
    Route("GET", f"{_THREAD}/entries/{{commit}}", view_entry),
    Route("GET", f"{_THREAD}/picture", draw_thread, ("whole",)),
    Route("GET", f"{_THREAD}/prompt", view_prompt),
    Route("GET", f"{_THREAD}/log", read_log, ("after",)),
    Route("GET", f"{_THREAD}/question", view_question),
    Route("POST", f"{_THREAD}/question", check_answer),
    *(Route("POST", f"{_THREAD}/{verb}", control_thread(verb)) for verb in CONTROLS),
    Route("POST", "/api/threads", start_new),
    Route("GET", "/api/workflows", list_registered),
    Route("GET", "/api/workflows/{name}", view_workflow),
    Route("GET", "/api/workflows/{name}/picture", draw_workflow),
    Route("GET", "/api/agents", list_agents, ("thread",)),
    Route("POST", "/api/drafts", begin_draft),
    Route("GET", "/api/drafts/{thread}", view_draft),
    Route("GET", "/api/drafts/{thread}/picture", draw_draft),
    Route("POST", "/api/drafts/{thread}/put", put_draft),
)

STREAM = "/api/stream"
CHAT = "/mcp"
