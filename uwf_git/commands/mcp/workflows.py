"""`uwf mcp --workflows`: the tools, tasks and resources of a chat that starts threads.

Nothing is kept between two messages: a task is a thread, by its id. A chat starts workflows by name
with agents that are trusted or the user's own; no tool answers for a person, raises a limit, or
names a command.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

from uwf_git.commands.admin import CHAT_ANSWERS
from uwf_git.commands.after import follow_up
from uwf_git.commands.agent_run.runs import THREAD_VARIABLE, is_any_at_work
from uwf_git.commands.background import (
    StillAtWork,
    WaitRequest,
    start_thread_driver,
    wait_for_threads,
)
from uwf_git.commands.caller import Caller
from uwf_git.commands.control.answer import (
    PersonAnswer,
    answer_thread,
    cut_shown,
    kill_thread,
    pause_thread,
    read_question,
    resume_thread,
    retry_thread,
)
from uwf_git.commands.family import Family, walk_descendants
from uwf_git.commands.inspect.context import find_wait, tell_given, view_question
from uwf_git.commands.inspect.graph import picture_thread
from uwf_git.commands.inspect.list import ASKED, ListRequest, is_stuck, list_thread_rows
from uwf_git.commands.inspect.show import get_text, show_thread
from uwf_git.commands.mcp.calls import (
    Question,
    as_json,
    bad_argument,
    read_form,
    read_text,
    read_thread,
    tell_status,
    view_task,
)
from uwf_git.commands.mcp.server import (
    LAST,
    TEXT,
    VERSION,
    McpPlace,
    McpServer,
    McpTool,
    NewTask,
    Reply,
    Resources,
    Tasks,
    describe_object,
)
from uwf_git.commands.start import (
    Here,
    StartRequest,
    check_agents,
    find_startable,
    list_startable,
    start_thread,
)
from uwf_git.commands.turn.branches import ThreadNotActive
from uwf_git.commands.turn.flow import check_asked, find_limit
from uwf_git.engine.picture.draw import lay_out, make_plan, render_svg
from uwf_git.errors import Conflict, Refused
from uwf_git.model.limits import LIMITS
from uwf_git.model.names import ThreadId, is_thread_id
from uwf_git.model.text import first_line
from uwf_git.model.thread import ENDED
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import HeadMoved, find_head, get_head
from uwf_git.store.threads.history import Snapshot, read_snapshot
from uwf_git.store.threads.local_files import ThreadBusy
from uwf_git.store.threads.naming import resolve_thread

# Programs give up on a call after 60 seconds.
_LONGEST_WAIT_S = 50
_MOST_THREADS = 50
# Of a question, for each of its parts.
_LONGEST_PART = 8000

_INSTRUCTIONS = (
    "uwf runs workflows of agents; each run is a thread that outlives this chat. start_workflow "
    "starts one and returns at once, with a task or the thread's id; wait_thread waits up to 50 "
    "seconds, read_thread tells what happened. When a thread waits for a person, tell your user "
    "what it asks, and never answer for them."
)


class ChatPlace(NamedTuple):
    open_store: Callable[[], Store]
    caller: Caller
    agent: str | None
    """$UWF_AGENT."""

    new_thread_id: Callable[[], ThreadId]

    @contextmanager
    def writing(self) -> Iterator[Store]:
        """Open the store for a call that writes, and follow up."""
        store = self.open_store()
        try:
            yield store
        finally:
            follow_up(store, self.caller.environ)

    def drive(self, store: Store, thread: ThreadId) -> None:
        """Let a process of its own drive *thread*."""
        start_thread_driver(store, self.caller, thread, agent=self.agent, wait=True)

    def may_answer(self, store: Store) -> bool:
        """Check whether the user may be asked here; an agent of a thread is nobody's chat."""
        is_inside = bool(self.caller.environ.get(THREAD_VARIABLE))
        return not is_inside and store.config.get_flag(CHAT_ANSWERS, default=True)


def _list_workflows(place: ChatPlace, _arguments: Mapping[str, Any]) -> str:
    rows = list_startable(place.open_store())
    names = ("name", "description", "isShipped", "problem")
    return as_json([{name: row[name] for name in names if row[name] is not None} for row in rows])


def _start_workflow(place: ChatPlace, arguments: Mapping[str, Any]) -> NewTask:
    name, prompt = read_text(arguments, "workflow"), read_text(arguments, "prompt")
    state, limits = arguments.get("state"), arguments.get("limits", {})
    if state is not None and not isinstance(state, dict):
        raise bad_argument("state", "is not an object")
    with place.writing() as store:
        found = find_startable(store, name)
        if found.workflow.name != name:
            # A hash may be of a file that nobody put here.
            raise bad_argument("workflow", "is not a name")
        check_agents(Here(store, place.caller.cwd, place.agent), found)
        _check_lower(limits, found.workflow.config)
        request = StartRequest(
            found.workflow.name,
            prompt,
            (),
            place.agent,
            limits=limits,
            needs_agents=True,
            state=state,
            found=found,
        )
        thread = start_thread(store, place.caller, request, thread=place.new_thread_id()).thread
        place.drive(store, thread)
    return NewTask(thread, f"thread {thread} was started; wait_thread and read_thread tell of it")


def _check_lower(limits: Any, config: Mapping[str, Any]) -> None:
    """Check that *limits* are limits, none above the workflow's own."""
    if not isinstance(limits, dict) or None in limits.values():
        raise bad_argument("limits", "is not an object of numbers")
    check_asked(limits)
    for name, limit in limits.items():
        if limit > config.get(name, limit):
            raise bad_argument("limits", f"has {name} above the workflow's own, {config[name]}")


def _list_threads(place: ChatPlace, arguments: Mapping[str, Any]) -> str:
    status = arguments.get("status")
    if status not in (None, *ASKED):
        raise bad_argument("status", f"is none of {', '.join(ASKED)}")
    statuses = frozenset() if status is None else frozenset({status})
    request = ListRequest(statuses=statuses, archived=status is None, limit=_MOST_THREADS + 1)
    names = ("thread", "workflowName", "status", "branchStatus", "depth", "said")
    rows = list_thread_rows(place.open_store(), request)
    told: list[Any] = [{name: row[name] for name in names if row.get(name)} for row in rows]
    if len(told) > _MOST_THREADS:
        told[_MOST_THREADS:] = [f"only the newest {_MOST_THREADS}: `uwf thread list --all` has all"]
    return as_json(told)


def _read_thread(place: ChatPlace, arguments: Mapping[str, Any]) -> str:
    return read_thread(McpPlace(place.open_store), arguments)


def _wait_thread(place: ChatPlace, arguments: Mapping[str, Any]) -> str:
    thread, seconds = read_text(arguments, "thread_id"), arguments.get("seconds", _LONGEST_WAIT_S)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds >= 0:
        raise bad_argument("seconds", "is a number from 0")
    store = place.open_store()
    request = WaitRequest([thread], min(seconds, _LONGEST_WAIT_S), place.caller.environ)
    # A chat that cancels the call, or ends, ends the wait.
    with suppress(StillAtWork, KeyboardInterrupt):
        wait_for_threads(store, request, on_rest=lambda _rest: None)
    return _tell(place, resolve_thread(store, thread))


def _steer_thread(place: ChatPlace, arguments: Mapping[str, Any]) -> str:
    action, reason = read_text(arguments, "action"), read_text(arguments, "reason", is_needed=False)
    with place.writing() as store:
        thread = resolve_thread(store, read_text(arguments, "thread_id"))
        status = read_snapshot(store, get_head(store, thread).commit).record.status
        match action:
            case "pause":
                pause_thread(store, place.caller, thread, reason=reason)
            case "resume":
                # A thread that is not paused lacks only the driver.
                if status not in {"ready", "split"}:
                    resume_thread(store, place.caller, thread, reason=reason)
            case "retry":
                retry_thread(store, place.caller, thread, hint=reason)
            case "cancel":
                kill_thread(store, place.caller, thread, reason=reason)
            case _:
                raise bad_argument("action", "is pause, resume, retry or cancel")
        if action in {"resume", "retry"}:
            try:
                # Whoever is at work already goes on.
                with suppress(ThreadBusy):
                    place.drive(store, thread)
            except Refused:
                # Where only persons are next, nothing is wrong.
                if not _find_questions(store, thread):
                    raise
    return _tell(place, thread)


def _tell(place: ChatPlace, thread: ThreadId) -> str:
    """Return where a thread stands, and what a person is asked."""
    store = place.open_store()
    shown, questions = _show(store, thread), _find_questions(store, thread).values()
    facts = {name: shown[name] for name in ("thread", "status", "state")}
    document = facts | {"message": tell_status(shown), "error": shown["error"]}
    if questions:
        document["waitsForPerson"] = [
            f"{each.message}\n\nOnly your user may answer: `uwf thread answer {each.thread}`"
            for each in questions
        ]
    return as_json(document)


# Tasks: a thread by its whole id.


def _find_task(store: Store, task: str) -> ThreadId:
    if not (is_thread_id(task) and find_head(store, ThreadId(task))):
        raise Refused(f"there is no task {task[:60]!r}", code="no-task")
    return ThreadId(task)


def _show(store: Store, thread: ThreadId) -> Reply:
    # The locks first: once they are free, what is read below is final.
    is_at_work = is_any_at_work(store, Family(store, thread))
    tip = read_snapshot(store, get_head(store, thread).commit)
    limit = None if tip.record.status in ENDED else find_limit(store, tip)
    shown = show_thread(store, thread)
    problems = [] if limit is None else [limit.message]
    held = shown.get("heldBy", [])
    # A branch that waits is asked about, or goes on by itself.
    if not any(each["status"] == "waiting" for each in held):
        problems += [each["error"] for each in held if is_stuck(each)]
    return shown | {"atWork": is_at_work, "limit": next(iter(problems), None)}


def _get_task(place: ChatPlace, task: str) -> Reply:
    store = place.open_store()
    thread = _find_task(store, task)
    shown, questions = _show(store, thread), _find_questions(store, thread)
    if place.may_answer(store):
        return view_task(shown, questions)
    return view_task(shown, {}, waits=[each.role for each in questions.values()])


def _update_task(place: ChatPlace, task: str, responses: Mapping[str, Any], client: str) -> None:
    """Record what the user answered; what is no open question, and no answer, is left alone."""
    with place.writing() as store:
        thread = _find_task(store, task)
        questions = _find_questions(store, thread) if place.may_answer(store) else {}
        answered = False
        try:
            for key, response in responses.items():
                given = response if isinstance(response, dict) and key in questions else {}
                content = given.get("content")
                if given.get("action") == "accept" and isinstance(content, dict):
                    # Another client may be faster.
                    with suppress(HeadMoved):
                        _answer(place, store, questions[key], content, client)
                        answered = True
        finally:
            if answered:
                # What is recorded stays, also before an answer that is refused. Another person may
                # be next, or somebody is at work already.
                with suppress(Refused, Conflict):
                    place.drive(store, thread)


def _answer(
    place: ChatPlace, store: Store, asked: Question, content: Mapping[str, Any], client: str
) -> None:
    question = read_question(store, place.caller, asked.thread, default=place.agent)
    meta, text = read_form(question.schema, content)
    note = f"answered in the MCP client {first_line(client)[:100]}"
    answer_thread(store, place.caller, question, PersonAnswer(meta, text, note=note))


def _cancel_task(place: ChatPlace, task: str) -> None:
    with place.writing() as store, suppress(ThreadNotActive):
        kill_thread(store, place.caller, _find_task(store, task), reason="cancelled in a chat")


def _find_questions(store: Store, thread: ThreadId) -> dict[str, Question]:
    """Return what persons are asked in a thread and its branches, by keys never used twice.

    The key is the commit that put the question: the same step may be taken back and asked again.
    """
    tip = read_snapshot(store, get_head(store, thread).commit)
    return {
        f"q-{find_wait(store, each).commit.oid}": question
        for each in (tip, *(branch for _, branch in walk_descendants(store, tip)))
        if each.record.status == "waiting" and (question := _read_question(store, each)) is not None
    }


def _read_question(store: Store, snapshot: Snapshot) -> Question | None:
    view = view_question(store, snapshot, snapshot.get_present())
    if view is None:
        return None
    parts = [
        f"{view['role']}: {view.get('description', '')}",
        view.get("systemPrompt"),
        tell_given(view),
        f"The task: {view['task']}",
    ]
    if view["lastStep"] is not None:
        step = snapshot.get_head_node().payload
        parts.append(f"Last, {step['role']}: {as_json(step['meta'])}")
        parts.append(get_text(snapshot, step.get("content")).strip())
    message = "\n\n".join(cut_shown(part, _LONGEST_PART) for part in parts if part)
    return Question(snapshot.record.thread, view["role"], message, view.get("outputSchema", {}))


# Resources.


def _read_resource(place: ChatPlace, uri: str) -> tuple[str, str] | None:
    """Return the type and the text of a resource, or None."""
    name, _, suffix = uri.removeprefix("uwf://thread/").partition(".")
    store = place.open_store()
    if not (uri.startswith("uwf://thread/") and is_thread_id(name) and suffix in _KINDS):
        return None
    if find_head(store, ThreadId(name)) is None:
        return None
    if suffix == "md":
        return _KINDS[suffix], _read_thread(place, {"thread_id": name})
    if suffix == "json":
        return _KINDS[suffix], as_json(show_thread(store, name, full=True))
    return _KINDS[suffix], render_svg(lay_out(make_plan(picture_thread(store, name))))


_KINDS = {"md": "text/markdown", "json": "application/json", "svg": "image/svg+xml"}

_TEMPLATES = [
    {"uriTemplate": f"uwf://thread/{{id}}.{suffix}", "name": f"thread.{suffix}", "mimeType": kind}
    for suffix, kind in _KINDS.items()
]


_THREAD = TEXT | {"description": "The id of a thread, or a unique prefix of it"}


_PROMPT = TEXT | {"description": "What is to be done, for readers who have not seen this chat"}
_REASON = TEXT | {"description": "Why; of a retry, a hint for the agent"}
_ACTION = {"enum": ["pause", "resume", "retry", "cancel"]}
_STATE = {"type": "object", "description": "Values that its state begins with"}
_LOWER = {
    "type": "object",
    "properties": {name: {"type": "number"} for name in LIMITS},
    "description": "Limits below the workflow's own; times in milliseconds, cost in US dollars",
}

TOOLS = (
    McpTool(
        "list_workflows",
        "List the workflows that can be started, with what each is for.",
        describe_object(),
        _list_workflows,
    ),
    McpTool(
        "start_workflow",
        "Start a workflow in this directory. Returns at once; it goes on without this chat.",
        describe_object(
            "workflow", "prompt", workflow=TEXT, prompt=_PROMPT, state=_STATE, limits=_LOWER
        ),
        _start_workflow,
        is_read_only=False,
        hints={"idempotentHint": False, "openWorldHint": True},
    ),
    McpTool(
        "list_threads",
        "List the newest threads; with status only those that are waiting, failed, running, "
        "ready, paused, completed or killed.",
        describe_object(status=TEXT),
        _list_threads,
    ),
    McpTool(
        "read_thread",
        "Read the steps of a thread as Markdown.",
        describe_object("thread_id", thread_id=_THREAD, last=LAST),
        _read_thread,
    ),
    McpTool(
        "wait_thread",
        "Wait until nobody is at work on a thread, at most 50 seconds; call it again while it is "
        "running.",
        describe_object("thread_id", thread_id=_THREAD, seconds={"type": "number"}),
        _wait_thread,
    ),
    McpTool(
        "steer_thread",
        "Pause a thread, resume it, let a failed one retry, or cancel it for good.",
        describe_object("thread_id", "action", thread_id=_THREAD, action=_ACTION, reason=_REASON),
        _steer_thread,
        is_read_only=False,
        hints={"destructiveHint": True, "idempotentHint": False},
    ),
)
"""The tools of a chat; each function takes its place first."""


def build_workflow_server(place: ChatPlace) -> McpServer:
    def bind(tool: McpTool) -> McpTool:
        def call(arguments: Mapping[str, Any]) -> str | NewTask:
            for name in arguments.keys() - tool.parameters["properties"].keys():
                raise bad_argument(name[:60], f"is no argument of {tool.name}")
            return tool.call(place, arguments)

        return tool._replace(call=call)

    tasks = Tasks(
        partial(_get_task, place), partial(_update_task, place), partial(_cancel_task, place)
    )
    resources = Resources(_TEMPLATES, partial(_read_resource, place))
    return McpServer(VERSION, _INSTRUCTIONS, [*map(bind, TOOLS)], tasks, resources)
