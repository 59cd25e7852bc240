"""The controls of threads and drafts.

Each control records one event; with `go` a driver is started after it.

Nothing here trusts a command: a driver that would run an untrusted command is refused, as
`uwf thread run` is, with what to type.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

from uwf_git.commands import start
from uwf_git.commands.control.answer import (
    AnswerRefused,
    PersonAnswer,
    answer_thread,
    read_question,
)
from uwf_git.commands.control.change_rules import AmendRequest, amend_thread, poke_thread
from uwf_git.commands.draft import (
    Draft,
    DraftRequest,
    NoDraftThread,
    describe_problem,
    is_put,
    read_draft,
    start_draft,
)
from uwf_git.commands.inspect.list import count_branches
from uwf_git.commands.inspect.show import read_moment
from uwf_git.commands.turn.choose_agent import Choice, bind_roles, find_played, read_played
from uwf_git.commands.turn.turn import list_field_problems
from uwf_git.commands.workflow.build import picture_source, picture_workflow, put_workflow
from uwf_git.commands.workflow.find import find_used
from uwf_git.errors import Conflict, Refused, StoreDamaged, UwfError
from uwf_git.library.handle import TaskHandle
from uwf_git.library.starting import to_agent_words
from uwf_git.model.builtin import AGENT_CONFIG, BUILTIN
from uwf_git.model.names import ThreadId
from uwf_git.model.text import name_store
from uwf_git.model.workflow import END, parse_role, parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import HeadMoved, get_head
from uwf_git.store.threads.history import read_root, read_snapshot
from uwf_git.store.threads.local_files import find_driver, find_workdir
from uwf_git.store.threads.naming import resolve_thread
from uwf_git.web.ui.answers import Asked, Created, Exact, Picture, bad_body, check_names, take_text
from uwf_git.web.ui.site import Site, draw, may_go_on

# The agents that the page offers in a directory, and takes: by an id, never a typed command.
#
# They are what is trusted there, the user's default agent in the server's own directory, and a
# person; no function that plays in another program.


def list_agents(site: Site, asked: Asked) -> dict[str, Any]:
    store, directory = site.open(), site.place.cwd
    if "thread" in asked.query:
        directory = find_directory(site, store, resolve_thread(store, asked.query["thread"]))
    default = start.find_default(site.here(store), directory)
    rows = [
        {
            "id": name,
            "command": agent["command"],
            "settings": ", ".join(
                f"{key} {json.dumps(value)}" for key, value in agent.items() if key != "command"
            ),
        }
        for name, agent in start.find_agents(site.here(store), directory).items()
    ]
    return {"agents": rows, "default": None if default is None else start.name_agent(default)}


def find_directory(site: Site, store: Store, thread: ThreadId) -> str:
    return find_workdir(store, thread) or site.place.cwd


def read_agents(
    site: Site, store: Store, given: Any, roles: Collection[str], directory: str
) -> dict[str, start.Agent]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
        raise bad_body("agents", "an object of agent ids is needed, by role")
    for role in given:
        # As a word of `--agent` another name may be a command.
        if role not in roles:
            raise bad_body(f"agents/{role}", "the workflow has no such role")
    agents = start.find_agents(site.here(store), directory)
    return {role: _find_one(agents, name, f"agents/{role}") for role, name in given.items()}


def _find_one(agents: dict[str, start.Agent], name: str, field: str) -> start.Agent:
    if name not in agents:
        raise bad_body(field, "no agent that is trusted here has this id")
    return agents[name]


_NO_SETTINGS = dict.fromkeys(BUILTIN[AGENT_CONFIG].payload["properties"])

Body = Mapping[str, Any]
Control = Callable[[Site, TaskHandle, Body], TaskHandle]
"""Records an event, and returns the thread that goes on."""


def _steer(
    act: Callable[[TaskHandle, str], None],
    name: str = "reason",
    *,
    needed: bool = False,
    may_go: bool = True,
) -> Control:
    def control(_site: Site, task: TaskHandle, body: Body) -> TaskHandle:
        check_names(body, name, *(("go",) if may_go else ()))
        act(task, take_text(body, name, needed=needed))
        return task

    return control


def fork(_site: Site, task: TaskHandle, body: Body) -> TaskHandle:
    check_names(body, "commit", "reason", "go")
    return task.fork(at=take_text(body, "commit") or None, reason=take_text(body, "reason"))


def poke(site: Site, task: TaskHandle, body: Body) -> TaskHandle:
    check_names(body, "hint", "go")
    hint = take_text(body, "hint")
    # Where no driver could take the step again, it is not taken back.
    retake = Choice(default=site.place.agent) if check_go(body) else None
    with site.place.writing() as store:
        poke_thread(store, site.place.caller, task.task_id, hint=hint, retake=retake)
    return task


def run(_site: Site, task: TaskHandle, body: Body) -> TaskHandle:
    """Record nothing: the driver is what is asked for."""
    check_names(body, "go")
    return task


def patch(_site: Site, task: TaskHandle, body: Body) -> TaskHandle:
    check_names(body, "patch", "reason", "go")
    task.update_state(_take_object(body, "patch"), take_text(body, "reason"))
    return task


def _take_object(body: Body, name: str) -> dict[str, Any]:
    value = body.get(name, {})
    if not isinstance(value, dict):
        raise bad_body(name, "an object is needed")
    return value


def amend(site: Site, task: TaskHandle, body: Body) -> TaskHandle:
    """Change limits, and agents among those that are offered where the thread runs."""
    check_names(body, "limits", "agents", "reason", "go")
    limits = _take_object(body, "limits")
    thread = ThreadId(task.task_id)
    with site.place.writing() as store:
        snapshot = read_snapshot(store, get_head(store, thread).commit)
        roles = read_played(snapshot, parse_workflow(snapshot.get_node(snapshot.record.workflow)))
        directory = find_directory(site, store, thread)
        agents = read_agents(site, store, body.get("agents"), roles.roles, directory)
        words = tuple(
            f"{role}={json.dumps(settings)}"
            for role, agent in agents.items()
            # What is trusted is all of an agent: first its other settings are removed.
            for settings in ({**_NO_SETTINGS, "command": agent["command"]}, agent)
        )
        request = AmendRequest(thread, None, words, limits, take_text(body, "reason"))
        amend_thread(store, site.place.caller, request)
    return task


def answer(site: Site, task: TaskHandle, body: Body) -> TaskHandle:
    """Record a person's answer to the question that was shown."""
    check_names(body, "question", "meta", "content", "note", "go")
    if "meta" not in body:
        raise bad_body("meta", "it is needed")
    place = site.place
    with place.writing() as store:
        shown = body.get("question")
        if not isinstance(shown, dict):
            raise bad_body("question", "the question that was shown is needed")
        head = get_head(store, ThreadId(task.task_id))
        # First: what was answered meanwhile may wait for nobody.
        if read_snapshot(store, head.commit).record.node != shown.get("head"):
            raise HeadMoved(head.thread)
        question = read_question(store, place.caller, task.task_id, default=place.agent)
        if shown != {"head": question.head, "role": question.role, "at": question.at}:
            raise HeadMoved(head.thread)
        given = PersonAnswer(body["meta"], take_text(body, "content"), note=take_text(body, "note"))
        try:
            answer_thread(store, place.caller, question, given)
        except AnswerRefused as error:
            error.facts["details"] = list_field_problems(question.schema, body["meta"])
            raise
    return task


def check_answer(site: Site, asked: Asked) -> dict[str, Any]:
    """Return what is wrong with the fields of an answer; nothing is recorded."""
    check_names(asked.body, "meta")
    place = site.place
    thread = asked.params["thread"]
    question = read_question(site.open(), place.caller, thread, default=place.agent)
    return {"details": list_field_problems(question.schema, asked.body.get("meta"))}


CONTROLS: Mapping[str, Control] = {
    "pause": _steer(TaskHandle.pause),
    "interrupt": _steer(TaskHandle.interrupt, needed=True),
    "resume": _steer(TaskHandle.resume),
    "retry": _steer(TaskHandle.retry, "hint"),
    "poke": poke,
    "kill": _steer(TaskHandle.cancel, may_go=False),
    "fork": fork,
    "patch": patch,
    "amend": amend,
    "answer": answer,
    "run": run,
}


def control_thread(verb: str) -> Callable[[Site, Asked], dict[str, Any]]:
    control = CONTROLS[verb]

    def route(site: Site, asked: Asked) -> dict[str, Any]:
        check_go(asked.body)
        thread = resolve_thread(site.open(), asked.params["thread"])
        task = control(site, TaskHandle(site.place, thread), asked.body)
        if verb == "run":
            return tell_drive(site, task, _drive(site, task))
        return go_on(site, task, asked.body)

    return route


def check_go(body: Body) -> bool:
    """Return whether *body* asks for a driver; it is read before anything is recorded."""
    go = body.get("go", False)
    if not isinstance(go, bool):
        raise bad_body("go", "true or false is needed")
    return go


def go_on(site: Site, task: TaskHandle, body: Body) -> dict[str, Any]:
    """Return what was recorded and, if *body* asks for a driver, whether it started."""
    driver, refused = None, None
    if check_go(body):
        try:
            driver = _drive(site, task)
        except UwfError as error:
            hint = name_store(error.hint or "", site.place.path) or None
            refused = {"code": error.code, "message": error.message, "hint": hint}
    return tell_drive(site, task, driver, refused)


def _drive(site: Site, task: TaskHandle) -> dict[str, Any] | None:
    """Start a driver, for a branch one of the whole thread; what has no role left ends here."""
    store, thread = site.open(), ThreadId(task.task_id)
    root = read_root(store, read_snapshot(store, get_head(store, thread).commit)).record.thread
    ends = task.next == END
    if ends:
        task.step()
    # A driver that is at work joins what has ended, but takes up no branch that it has left.
    whole = task
    if root != thread and find_driver(store, root) is None:
        whole = TaskHandle(site.place, root)
    elif ends:
        return None
    try:
        begun = whole.run_in_background(wait=True)
    except UwfError as error:
        is_apart = not ends and whole is not task and error.exit_status == Conflict.exit_status
        if not is_apart:
            if ends:
                tip = read_snapshot(store, get_head(store, root).commit)
                if not may_go_on(count_branches(store, tip)):
                    # The branches that are left need somebody, and say so.
                    return None
            raise
        if task.status != "ready":
            # It goes on already.
            return None
        # Another branch has a driver of its own, and so gets this one.
        begun = task.run_in_background(wait=True)
    return {"pid": begun.pid, "log": begun.log}


def tell_drive(
    site: Site,
    task: TaskHandle,
    driver: dict[str, Any] | None,
    refused: dict[str, Any] | None = None,
) -> dict[str, Any]:
    tip = get_head(site.open(), ThreadId(task.task_id)).commit
    return {"thread": task.task_id, "tip": tip, "driver": driver, "refused": refused}


# New threads: the workflows that may be started here, and the start, with trusted agents only.


def list_registered(site: Site, _asked: Asked) -> dict[str, Any]:
    return {"workflows": start.list_startable(site.open())}


def view_workflow(site: Site, asked: Asked) -> dict[str, Any]:
    store = site.open()
    found = start.find_startable(store, asked.params["name"])
    workflow, nodes = found.workflow, {node.hash: node for node in found.closure}
    played = find_played(workflow, found.closure)
    bound = bind_roles(store, played, default=site.place.agent, directory=site.place.cwd)
    here = site.here(store)
    offered = start.find_agents(here, here.cwd)

    def view_agent(role: str) -> dict[str, Any]:
        agent = bound.agents.get(role)
        if agent is None:
            return {"agent": None, "agentId": None, "problem": None}
        return {
            "agent": agent["command"],
            "agentId": start.name_agent(agent) if start.name_agent(agent) in offered else None,
            "problem": start.find_agent_problem(here, agent, workflow.name, bound.typed),
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
    found = start.find_startable(site.open(), asked.params["name"])
    return draw(site, picture_workflow(found.workflow, found.closure))


def start_new(site: Site, asked: Asked) -> Created:
    """Start a thread; with `go` it is driven in the background."""
    body, place = asked.body, site.place
    check_names(body, "workflow", "prompt", "agents", "go")
    goes = check_go(body)
    with place.writing() as store:
        found = start.find_startable(store, take_text(body, "workflow", needed=True))
        roles = find_played(found.workflow, found.closure).roles
        agents = read_agents(site, store, body.get("agents"), roles, place.cwd)
        words = to_agent_words(agents)
        start.check_agents(site.here(store), found, words, is_driven=goes)
        request = start.StartRequest(
            found.workflow.name,
            take_text(body, "prompt") or None,
            words,
            place.agent,
            needs_agents=goes,
            found=found,
        )
        started = start.start_thread(store, place.caller, request, thread=site.new_thread_id())
    return Created(go_on(site, TaskHandle(place, started.thread), body))


# Drafts of workflows: begun, shown with their picture, and put after a yes.

_NOTHING_YET: dict[str, Any] = {
    **dict.fromkeys(("wish", "name", "file", "why", "digest")),
    "questions": [],
    "problems": [],
    "roles": [],
    "canPut": False,
    "isPut": False,
}


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
        words = None
        if named:
            agent = _find_one(start.find_agents(site.here(store), place.cwd), named, "agent")
            words = to_agent_words({"x": agent})[0].partition("=")[2]
        request = DraftRequest(take_text(body, "wish"), words, place.agent)
        started = start_draft(store, place.caller, request, thread=site.new_thread_id())
    return Created(go_on(site, TaskHandle(place, started.thread), {"go": True}))


def view_draft(site: Site, asked: Asked) -> dict[str, Any]:
    store = site.open()
    thread = resolve_thread(store, asked.params["thread"])
    moment = read_moment(store, get_head(store, thread))
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
        "roles": [*dict.fromkeys(judgement.roles)],
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
            raise Conflict(
                f"the draft of thread {draft.thread} is another one now",
                code="draft-changed",
                hint="nothing was put; read it again",
                thread=draft.thread,
            )
        if not _can_put(draft):
            raise _draft_not_fit(draft)
        put = put_workflow(store, place.caller, draft.judgement.source.encode())
    return Created({"name": put.name, "workflow": put.workflow, "version": put.version})


def _can_put(draft: Draft) -> bool:
    return not draft.questions and not draft.judgement.problems


def _digest(draft: Draft) -> str:
    return hashlib.sha256(draft.judgement.source.encode(errors="replace")).hexdigest()


def _is_put(store: Store, draft: Draft) -> bool:
    name, source = draft.judgement.name, draft.judgement.source
    with suppress(StoreDamaged):
        return bool(name) and is_put(store, name, source)
    return False
