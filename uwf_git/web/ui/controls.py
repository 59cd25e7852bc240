"""The controls of a thread. Each records one event; with `go` a driver is started after it.

Nothing here trusts a command: a driver that would run an untrusted command is refused, as
`uwf thread run` is, with what to type.
"""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from uwf_git.commands.control.answer import (
    AnswerRefused,
    PersonAnswer,
    answer_thread,
    read_question,
)
from uwf_git.commands.control.change_rules import AmendRequest, amend_thread
from uwf_git.commands.lifecycle.start import Agent, find_agents, find_default, name_agent
from uwf_git.commands.turn.bind_roles import read_played
from uwf_git.commands.turn.check_meta import list_field_problems
from uwf_git.errors import UwfError
from uwf_git.library.handle import TaskHandle
from uwf_git.model.builtin import AGENT_CONFIG, BUILTIN
from uwf_git.model.names import ThreadId
from uwf_git.model.workflow import END, parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import HeadMoved, get_head, resolve_thread
from uwf_git.store.threads.local_files import find_workdir
from uwf_git.store.threads.snapshot import read_snapshot
from uwf_git.web.ui.answers import Asked, bad_body, check_names, take_text
from uwf_git.web.ui.site import Site

# The agents that the page offers in a directory, and takes: by an id, never a typed command.
#
# They are what is trusted there, the user's default agent in the server's own directory, and a
# person; no function that plays in another program.


def list_agents(site: Site, asked: Asked) -> dict[str, Any]:
    store, directory = site.open(), site.place.cwd
    if "thread" in asked.query:
        directory = find_directory(site, store, resolve_thread(store, asked.query["thread"]))
    default = find_default(site.here(store), directory)
    rows = [
        {
            "id": name,
            "command": agent["command"],
            "settings": ", ".join(
                f"{key} {json.dumps(value)}" for key, value in agent.items() if key != "command"
            ),
        }
        for name, agent in find_agents(site.here(store), directory).items()
    ]
    return {"agents": rows, "default": None if default is None else name_agent(default)}


def find_directory(site: Site, store: Store, thread: ThreadId) -> str:
    return find_workdir(store, thread) or site.place.cwd


def find_agent(site: Site, store: Store, name: str) -> Agent:
    return _find_one(find_agents(site.here(store), site.place.cwd), name, "agent")


def read_agents(
    site: Site, store: Store, given: Any, roles: Collection[str], directory: str
) -> dict[str, Agent]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
        raise bad_body("agents", "an object of agent ids is needed, by role")
    for role in given:
        # As a word of `--agent` another name may be a command.
        if role not in roles:
            raise bad_body(f"agents/{role}", "the workflow has no such role")
    agents = find_agents(site.here(store), directory)
    return {role: _find_one(agents, name, f"agents/{role}") for role, name in given.items()}


def _find_one(agents: dict[str, Agent], name: str, field: str) -> Agent:
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
    "poke": _steer(TaskHandle.poke, "hint"),
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
            return tell_drive(site, task, _drive(task))
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
            driver = _drive(task)
        except UwfError as error:
            refused = {"code": error.code, "message": error.message, "hint": error.hint}
    return tell_drive(site, task, driver, refused)


def _drive(task: TaskHandle) -> dict[str, Any] | None:
    """Start a driver; a thread with no role left ends here, and needs none."""
    if task.next == END:
        task.step()
        return None
    begun = task.run_in_background()
    return {"pid": begun.pid, "log": begun.log}


def tell_drive(
    site: Site,
    task: TaskHandle,
    driver: dict[str, Any] | None,
    refused: dict[str, Any] | None = None,
) -> dict[str, Any]:
    tip = get_head(site.open(), ThreadId(task.task_id)).commit
    return {"thread": task.task_id, "tip": tip, "driver": driver, "refused": refused}
