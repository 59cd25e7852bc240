"""Drafts of workflows: begun, shown with their picture, and put after a yes."""

import hashlib
from typing import Any

from uwf_git.commands.draft import (
    Draft,
    DraftRequest,
    NoDraftThread,
    describe_problem,
    read_draft,
    start_draft,
)
from uwf_git.commands.inspect.show import read_moment
from uwf_git.commands.lifecycle.start import (
    StartRequest,
    check_agents,
    find_agent_problem,
    find_agents,
    find_startable,
    list_startable,
    name_agent,
    start_thread,
)
from uwf_git.commands.turn.bind_roles import bind_roles, find_played
from uwf_git.commands.workflow.build import picture_source, put_workflow, view_moves
from uwf_git.commands.workflow.find import find_used
from uwf_git.errors import Conflict, Refused, StoreDamaged
from uwf_git.library.handle import TaskHandle
from uwf_git.library.starting import to_agent_words
from uwf_git.model.workflow import parse_role
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import resolve_thread
from uwf_git.store.workflows import SourceFiles, find_version, list_names, read_sources
from uwf_git.web.ui.answers import Asked, Created, Exact, Picture, check_names, take_text
from uwf_git.web.ui.controls import check_go, find_agent, go_on, read_agents
from uwf_git.web.ui.site import Site
from uwf_git.web.ui.thread_view import draw

# New threads: the workflows that may be started here, and the start, with trusted agents only.


def list_registered(site: Site, _asked: Asked) -> dict[str, Any]:
    return {"workflows": list_startable(site.open())}


def view_workflow(site: Site, asked: Asked) -> dict[str, Any]:
    store = site.open()
    found = find_startable(store, asked.params["name"])
    workflow, nodes = found.workflow, {node.hash: node for node in found.closure}
    played = find_played(workflow, found.closure)
    bound = bind_roles(store, played, default=site.place.agent, directory=site.place.cwd)
    here = site.here(store)
    offered = find_agents(here, here.cwd)

    def view_agent(role: str) -> dict[str, Any]:
        agent = bound.agents.get(role)
        if agent is None:
            return {"agent": None, "agentId": None, "problem": None}
        return {
            "agent": agent["command"],
            "agentId": name_agent(agent) if name_agent(agent) in offered else None,
            "problem": find_agent_problem(here, agent, workflow.name, bound.typed),
        }

    return {
        "name": workflow.name,
        "workflow": workflow.hash,
        "description": workflow.description,
        "needsPrompt": workflow.flow is None,
        "roles": [
            {
                "id": Exact(role),
                "name": role,
                "description": parse_role(nodes[played.roles[role]]).description,
                **view_agent(role),
            }
            for role in played.roles
        ],
    }


def draw_workflow(site: Site, asked: Asked) -> Picture:
    found = find_startable(site.open(), asked.params["name"])
    nodes = {node.hash: node for node in found.closure}
    return draw(site, view_moves(found.workflow, nodes.__getitem__))


def start_new(site: Site, asked: Asked) -> Created:
    """Start a thread; with `go` it is driven in the background."""
    body, place = asked.body, site.place
    check_names(body, "workflow", "prompt", "agents", "go")
    goes = check_go(body)
    with place.writing() as store:
        found = find_startable(store, take_text(body, "workflow", needed=True))
        roles = find_played(found.workflow, found.closure).roles
        agents = read_agents(site, store, body.get("agents"), roles, place.cwd)
        words = to_agent_words(agents)
        check_agents(site.here(store), found, words, is_driven=goes)
        request = StartRequest(
            found.workflow.name,
            take_text(body, "prompt") or None,
            words,
            place.agent,
            needs_agents=goes,
            found=found,
        )
        started = start_thread(store, place.caller, request, thread=site.new_thread_id())
    return Created(go_on(site, TaskHandle(place, started.thread), body))


_NOTHING_YET: dict[str, Any] = {
    **dict.fromkeys(("wish", "name", "file", "why", "digest")),
    "questions": [],
    "problems": [],
    "roles": [],
    "canPut": False,
    "isPut": False,
}


def _draft_changed(thread: str) -> Conflict:
    return Conflict(
        f"the draft of thread {thread} is another one now",
        code="draft-changed",
        hint="nothing was put; read it again",
        thread=thread,
    )


def _draft_not_fit(draft: Draft) -> Refused:
    problems = [describe_problem(each) for each in draft.judgement.problems]
    told = problems[0] if problems else "its writer has questions"
    return Refused(
        f"the draft of thread {draft.thread} is no workflow yet: {told}",
        code="draft-not-fit",
        hint="say more in the wish, and draft again",
        thread=draft.thread,
    )


def begin_draft(site: Site, asked: Asked) -> Created:
    """Start the thread that drafts a workflow, and drive it in the background."""
    body, place = asked.body, site.place
    check_names(body, "wish", "agent")
    with place.writing() as store:
        named = take_text(body, "agent")
        agent = find_agent(site, store, named) if named else None
        words = None if agent is None else to_agent_words({"x": agent})[0].partition("=")[2]
        request = DraftRequest(take_text(body, "wish"), words, place.agent)
        started = start_draft(store, place.caller, request, thread=site.new_thread_id())
    return Created(go_on(site, TaskHandle(place, started.thread), {"go": True}))


def view_draft(site: Site, asked: Asked) -> dict[str, Any]:
    store = site.open()
    thread = resolve_thread(store, asked.params["thread"])
    moment = read_moment(store, thread)
    view: dict[str, Any] = {
        "thread": thread,
        "status": moment.status,
        "isRunning": moment.running is not None,
        "workflow": moment.snapshot.record.workflow_name,
    }
    try:
        draft = read_draft(store, site.place.cwd, thread)
    except NoDraftThread:
        if moment.snapshot.record.workflow_name != "draft":
            raise
        return view | _NOTHING_YET
    judgement = draft.judgement
    return {
        **view,
        "wish": draft.wish,
        "name": judgement.name or None,
        "file": judgement.source,
        "why": draft.why,
        "questions": list(draft.questions),
        "problems": [*map(describe_problem, judgement.problems)],
        "roles": list(judgement.roles),
        "digest": _digest(draft),
        "canPut": _can_put(draft),
        "isPut": _is_put(store, draft),
    }


def draw_draft(site: Site, asked: Asked) -> Picture:
    store = site.open()
    draft = read_draft(store, site.place.cwd, asked.params["thread"])
    if draft.questions or not draft.judgement.name:
        raise _draft_not_fit(draft)
    source = draft.judgement.source.encode(errors="replace")
    used = find_used(store, site.place.cwd)
    return draw(site, picture_source(source, path=None, find_used=used))


def put_draft(site: Site, asked: Asked) -> Created:
    """Put a draft that was shown; it names no command, so nothing is trusted by this."""
    body, place = asked.body, site.place
    check_names(body, "digest")
    with place.writing() as store:
        draft = read_draft(store, place.cwd, asked.params["thread"])
        if take_text(body, "digest", needed=True) != _digest(draft):
            raise _draft_changed(draft.thread)
        if not _can_put(draft):
            raise _draft_not_fit(draft)
        put = put_workflow(store, place.caller, draft.judgement.source.encode())
    return Created({"name": put.name, "workflow": put.workflow, "version": put.version})


def _can_put(draft: Draft) -> bool:
    return not draft.questions and not draft.judgement.problems


def _digest(draft: Draft) -> str:
    return hashlib.sha256(draft.judgement.source.encode(errors="replace")).hexdigest()


def _is_put(store: Store, draft: Draft) -> bool:
    name = draft.judgement.name
    if not name or name not in list_names(store):
        return False
    try:
        version = find_version(store, name)
        if version is None or version.is_removed:
            return False
        files = SourceFiles(draft.judgement.source.encode(), {})
        return read_sources(store.objects, version.commit) == files
    except StoreDamaged:
        return False
