"""What a chat is told of the store, without a process: the rest is in tests/cli."""

import json
from itertools import count
from threading import Event
from typing import Any

import pytest
from commands.flows import CHECKS, split_checks
from commands.turns import PLANS, script
from commands.world import DEMO, World, says
from store.small_packs import lose

from uwf_git.agents.group import cancellable
from uwf_git.commands import background
from uwf_git.commands.background import DriverRequest, WaitRequest, wait_for_threads
from uwf_git.commands.caller import Caller
from uwf_git.commands.mcp import workflows
from uwf_git.commands.mcp.server import McpServer
from uwf_git.commands.mcp.workflows import ChatPlace, build_workflow_server
from uwf_git.commands.start import StartRequest
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import list_threads
from uwf_git.store.threads.local_files import lock_drive

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {
        "extensions": {"io.modelcontextprotocol/tasks": {}}
    },
}


@pytest.fixture
def server(world: World) -> McpServer:
    return build_workflow_server(ChatPlace(lambda: world.store, world.caller, None, world.new_id))


def ask(server: McpServer, method: str, **params: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    reply = server.answer(message)
    assert reply is not None
    return reply.get("result", reply.get("error"))


def call(server: McpServer, name: str, **arguments: Any) -> Any:
    return ask(server, "tools/call", name=name, arguments=arguments)


def test_task_at_its_limit_is_over(world: World, server: McpServer) -> None:
    world.put()
    thread = world.begin(StartRequest("demo", "x", ("a",), limits={"maxSteps": 1}))
    assert ask(server, "tasks/get", taskId=thread)["status"] == "working"
    world.step(thread)

    task = ask(server, "tasks/get", taskId=thread)
    assert (task["status"], task["result"]["isError"]) == ("completed", True)
    assert "is at its limit: 1 of 1 steps" in task["statusMessage"]


def test_task_whose_next_role_cannot_be_decided_is_over(world: World, server: McpServer) -> None:
    thread = world.begun(DEMO.replace("to: checker}", "to: checker, condition: meta.text > 3}"))
    world.step(thread)

    task = ask(server, "tasks/get", taskId=thread)

    assert (task["status"], task["result"]["isError"]) == ("completed", True)
    assert "condition `meta.text > 3` failed: The values" in task["statusMessage"]
    assert "steer_thread" not in task["statusMessage"]


def test_task_whose_branches_cannot_be_joined_is_over(world: World, server: McpServer) -> None:
    thread = world.stepped(script(reviewer={"x": 1}, tester={"x": 2}), source=CHECKS, times=4)

    task = ask(server, "tasks/get", taskId=thread)

    assert (task["status"], task["result"]["isError"]) == ("completed", True)
    assert "the branches of checks disagree about x" in task["statusMessage"]
    assert "steer_thread" not in task["statusMessage"]


def test_what_is_answered_before_a_wrong_answer_goes_on(
    world: World, server: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven: list[ThreadId] = []
    monkeypatch.setattr(ChatPlace, "drive", lambda _place, _store, thread: driven.append(thread))
    schema = "{properties: {ok: {type: boolean}}, required: [ok]}"
    split = split_checks(world, f"{CHECKS}roles: {{tester: {{outputSchema: {schema}}}}}\n")
    for branch in split.children:
        world.step(branch, command="human")
    right, wrong = ask(server, "tasks/get", taskId=split.thread)["inputRequests"]
    contents = {right: {"content": "Fine."}, wrong: {"ok": "maybe"}}
    given = {key: {"action": "accept", "content": each} for key, each in contents.items()}

    assert "code" in ask(server, "tasks/update", taskId=split.thread, inputResponses=given)
    assert list(ask(server, "tasks/get", taskId=split.thread)["inputRequests"]) == [wrong]
    assert driven == [split.thread]


def test_person_is_shown_what_is_to_be_approved(world: World, server: McpServer) -> None:
    world.put()
    thread = world.start(prompt="x" * 300_000)
    world.step(thread, says({"text": "a"}, "1. Delete the database."))
    world.step(thread, command="human")

    (asked,) = ask(server, "tasks/get", taskId=thread)["inputRequests"].values()
    waits = json.loads(call(server, "wait_thread", thread_id=thread)["content"][0]["text"])
    for message in (asked["params"]["message"], *waits["waitsForPerson"]):
        assert "Check.\n\nThe task: xxx" in message
        assert "xxx\n[… `uwf thread read` shows all of it]\n\nLast, writer: {" in message
        assert "}\n\n1. Delete the database." in message
        assert len(message) < 10_000


def test_person_is_told_the_input_of_a_turn(world: World, server: McpServer) -> None:
    thread = world.begun(PLANS, "human")
    world.step(thread)

    (asked,) = ask(server, "tasks/get", taskId=thread)["inputRequests"].values()
    assert "Carry out 000.md.\n\nThe task: " in asked["params"]["message"]


def test_threads_that_are_left_out_are_told_of(
    world: World, server: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflows, "_MOST_THREADS", 1)
    first, newest = world.begun(), world.begun()
    told = json.loads(call(server, "list_threads")["content"][0]["text"])
    assert (told[0]["thread"], told[1][:17]) == (newest, "only the newest 1")
    world.kill(first)
    assert len(json.loads(call(server, "list_threads", status="ready")["content"][0]["text"])) == 1


def test_threads_are_listed_by_their_status(server: McpServer, thread: ThreadId) -> None:
    (listed,) = json.loads(call(server, "list_threads", status="ready")["content"][0]["text"])
    assert listed["thread"] == thread
    assert json.loads(call(server, "list_threads", status="failed")["content"][0]["text"]) == []
    for unknown in ("foo", "", ["ready"]):
        refused = call(server, "list_threads", status=unknown)
        assert "status is none of ready, waiting" in refused["content"][0]["text"]


def test_workflow_is_not_named_by_its_hash(world: World, server: McpServer) -> None:
    refused = call(server, "start_workflow", workflow=world.put().workflow, prompt="x")
    assert refused["isError"]
    assert "workflow is not a name" in refused["content"][0]["text"]
    refused = call(server, "start_workflow", workflow="demo")
    assert "prompt is missing" in refused["content"][0]["text"]


def test_limits_may_be_lowered_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.put(DEMO + "config: {maxSteps: 5}\n")
    monkeypatch.setattr(ChatPlace, "drive", lambda *_: None)
    place = ChatPlace(lambda: world.store, world.caller, "human", world.new_id)
    chat = build_workflow_server(place)

    def start(**limits: Any) -> str:
        return json.dumps(call(chat, "start_workflow", workflow="demo", prompt="x", limits=limits))

    assert "limits has maxSteps above the workflow's own, 5" in start(maxSteps=6)
    assert "limits is not an object of numbers" in start(maxSteps=None)
    assert "isError" in start(maxStep=1)
    assert "null" not in start(maxSteps=0)
    assert "isError" not in start(maxSteps=4, maxCost=0.5)
    (thread,) = list_threads(world.store, archived=False)
    assert dict(world.snapshot(thread).get_present().limits) == {"maxSteps": 4, "maxCost": 0.5}


@pytest.mark.parametrize("end", ["", ".txt", ".md.svg", "/../config"])
def test_other_address_is_no_resource(server: McpServer, end: str, thread: ThreadId) -> None:
    assert ask(server, "resources/read", uri=f"uwf://thread/{thread}{end}")["code"] == -32602
    found = ask(server, "resources/read", uri=f"uwf://thread/{thread}.md")
    assert "# Do it." in found["contents"][0]["text"]
    (found,) = ask(server, "resources/read", uri=f"uwf://thread/{thread}.json")["contents"]
    assert (found["mimeType"], json.loads(found["text"])["thread"]) == ("application/json", thread)


def test_damaged_thread_does_not_end_the_server(world: World, server: McpServer) -> None:
    thread = world.begun()
    lose(world.store, world.snapshot(thread).commit.tree)
    world.reopen()

    found = ask(server, "resources/read", uri=f"uwf://thread/{thread}.json")

    assert (found["code"], "is missing" in found["message"]) == (-32603, True)


def test_wait_ends_with_the_call_that_asked_for_it(world: World, server: McpServer) -> None:
    thread, cancelled, ticks = world.begun(), Event(), count()
    cancelled.set()
    request = WaitRequest(
        [thread], 9, sleep=lambda _seconds: None, monotonic=lambda: float(next(ticks))
    )

    with lock_drive(world.store, ThreadId(thread), since_ms=0), cancellable(cancelled):
        with pytest.raises(KeyboardInterrupt):
            wait_for_threads(world.store, request, on_rest=lambda _rest: None)
        told = call(server, "wait_thread", thread_id=thread)

    assert json.loads(told["content"][0]["text"])["status"] == "running"


def test_wait_without_an_end_is_refused(world: World, server: McpServer) -> None:
    told = call(server, "wait_thread", thread_id=world.begun(), seconds=float("nan"))
    assert told["content"][0]["text"].startswith("seconds is a number from 0")


def test_driver_of_a_chat_sleeps_until_limits_end(
    world: World, server: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []

    def start(_store: Store, _caller: Caller, request: DriverRequest) -> None:
        started.append((request.wait, request.argv(ThreadId(request.thread))))

    monkeypatch.setattr(background, "start_driver", start)
    call(server, "steer_thread", thread_id=world.begun(), action="resume")

    ((waits, argv),) = started
    assert (waits, argv[-1]) == (True, "--wait")


def test_thread_is_paused_and_cancelled_and_nothing_else_is_done(
    world: World, server: McpServer, thread: ThreadId
) -> None:
    assert call(server, "steer_thread", thread_id=thread, action="stop")["isError"]
    for action, status in (("pause", "paused"), ("cancel", "killed")):
        told = call(server, "steer_thread", thread_id=thread, action=action, reason="enough")
        assert json.loads(told["content"][0]["text"])["status"] == status
        assert world.snapshot(thread).body == "enough"


def test_thread_is_resumed_while_somebody_is_at_work(world: World, server: McpServer) -> None:
    thread = world.begun()
    world.pause(thread)

    with lock_drive(world.store, thread, since_ms=0):
        told = call(server, "steer_thread", thread_id=thread, action="resume")

    assert (told["isError"], world.events(thread)[-1]) == (False, "resume")


def test_client_is_told_what_a_call_may_do(server: McpServer) -> None:
    """A client may repeat an idempotent call, and ask its user before a destructive one."""
    tools = {tool["name"]: tool["annotations"] for tool in ask(server, "tools/list")["tools"]}
    changing = {name for name, hints in tools.items() if not hints["readOnlyHint"]}
    assert changing == {"start_workflow", "steer_thread"}
    assert not any(tools[name]["idempotentHint"] for name in changing)
    assert [name for name, hints in tools.items() if hints["destructiveHint"]] == ["steer_thread"]
