"""The routes over a store, without a server: what they tell, record and refuse."""

import os
from typing import Any
from unittest import mock

import pytest
from commands.flows import CHECKS, finish, plays, split_checks
from commands.world import DEMO, World, fails, says
from refusing import refuses
from web.allowed import HOSTILE_SIGNS, Parsed
from web.stories import BIDI, KEY, tell_hostile, tell_work
from web.ui.asking import Ask

from uwf_git.commands.background import Driver, DriverRequest
from uwf_git.commands.control.answer import AnswerRefused
from uwf_git.errors import Refused, UwfError
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import HeadMoved, NoSuchThread
from uwf_git.store.threads.local_files import ThreadBusy
from uwf_git.store.trust import list_trusted, trust_agents
from uwf_git.web.ui.answers import Asked
from uwf_git.web.ui.controls import CONTROLS
from uwf_git.web.ui.site import Site, view_thread


def test_list_is_searched(ask: Ask, world: World) -> None:
    failed = world.begun()
    world.fail(failed, fails("no such module"))
    world.start()

    empty = {"status": "", "workflow": "", "within": "", "after": ""}
    [row] = ask("GET", "/api/threads", search="NO module", **empty)["rows"]
    assert row["thread"] == failed
    with refuses("bad-body", match="one of active, ended, all"):
        ask("GET", "/api/threads", show="some")
    with refuses("bad-body", match="status: one of waiting, failed"):
        ask("GET", "/api/threads", status="foo")


def test_thread_has_its_events_and_each_its_texts(ask: Ask, world: World) -> None:
    thread = tell_work(world)

    seen = ask("GET", f"/api/threads/{thread}")

    for entry in seen["entries"]:
        found = ask("GET", f"/api/threads/{thread}/entries/{entry['commit']}")
        assert found["entry"] == entry
        assert all(world.store.path in each["command"] for each in found["commands"])
        for part in found["parts"]:
            assert Parsed(part["html"]).foreign == []
            assert "#c-" not in part["html"]
    with refuses("no-such-entry"):
        ask("GET", f"/api/threads/{thread}/entries/{'0' * 40}")
    with pytest.raises(NoSuchThread):
        ask("GET", "/api/threads/01J99999999999999999999999")


def test_list_counts_the_steps_that_the_thread_itself_counts(ask: Ask, world: World) -> None:
    split = split_checks(world)

    def count() -> tuple[int, int]:
        [row] = ask("GET", "/api/threads", show="all")["rows"]
        return row["steps"], ask("GET", f"/api/threads/{split.thread}")["totals"]["steps"]

    assert count() == (1, 1)
    world.step(split.children[0], plays)
    assert count() == (2, 2)
    split.finish_branches()
    finish(world, split.thread)
    listed, told = count()
    assert listed == told > 3


def test_a_hostile_thread_does_nothing(ask: Ask, world: World) -> None:
    thread = tell_hostile(world)
    seen = ask("GET", f"/api/threads/{thread}")
    answers = [seen, ask("GET", "/api/threads", show="all")]
    answers += [
        ask("GET", f"/api/threads/{thread}/entries/{each['commit']}") for each in seen["entries"]
    ]
    for name, text in _walk(answers):
        assert HOSTILE_SIGNS.search(text.replace("\r", "")) is None, name
        assert KEY not in text
        if name == "html":
            assert Parsed(text).foreign == []
    assert BIDI not in ask("GET", f"/api/threads/{thread}/picture")


def _walk(value: Any, name: str = "") -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(name, value)]
    if isinstance(value, dict):
        return [each for key, inner in value.items() for each in _walk(inner, key)]
    if isinstance(value, list):
        return [each for inner in value for each in _walk(inner, name)]
    return []


ASKS = """\
name: asks
description: Ask a person.
agentOverrides: {judge: human}
roles:
  judge:
    description: Judges.
    systemPrompt: "Is it **good**?"
    outputSchema:
      type: object
      required: [verdict, findings]
      properties:
        verdict: {enum: [ok, no]}
        findings: {type: array, items: {type: object, properties: {line: {type: integer}}}}
moderator:
  - {from: $START, to: judge}
  - {from: judge, to: $END}
"""


def test_answer_is_checked_and_lost_once_another_was_faster(ask: Ask, world: World) -> None:
    thread = world.begun(ASKS, "human")
    asked = ask("GET", f"/api/threads/{thread}/question")
    question, path = asked["question"], f"/api/threads/{thread}/answer"
    assert "<strong>good</strong>" in asked["html"]
    assert asked["schema"]["properties"]["verdict"] == {"enum": ["ok", "no"]}

    with pytest.raises(AnswerRefused) as refused:
        ask("POST", path, {"question": question, "meta": {"findings": [{"line": "x"}]}})
    assert [each["pointer"] for each in refused.value.facts["details"]] == [
        "/verdict",
        "/findings/0/line",
    ]
    checked = ask("POST", f"/api/threads/{thread}/question", {"meta": {"verdict": "ok"}})
    assert [each["pointer"] for each in checked["details"]] == ["/findings"]
    good = {"question": question, "meta": {"verdict": "ok", "findings": []}, "content": "Yes."}
    good["note"] = "By hand."
    assert ask("POST", path, good)["driver"] is None
    with pytest.raises(HeadMoved):
        ask("POST", path, good)
    with refuses("bad-body"):
        ask("POST", path, {"question": question})


def test_person_is_asked_about_the_input_and_the_files(ask: Ask, world: World) -> None:
    turn = "{type: agent, agentId: judge, input: {plan: '${prompt}'}, inputFiles: [gone.md]}"
    thread = world.begun(f"name: asks\ndescription: Ask.\nroot: {turn}\n", "human")

    html = ask("GET", f"/api/threads/{thread}/question")["html"]
    assert '"plan": "Do it."' in html
    assert "Files: <code>gone.md</code> (is not there)" in html


def test_controls_record_only(ask: Ask, world: World, thread: ThreadId, site: Site) -> None:
    path = f"/api/threads/{thread}"

    def can() -> set[str]:
        document = view_thread(site, Asked({"thread": thread}, {}, {}))
        assert set(document["can"]) <= set(CONTROLS)
        return set(document["can"]) - {"patch", "amend"}

    assert can() == {"pause", "kill", "fork", "run"}
    ask("POST", f"{path}/pause", {"reason": "wait"})
    assert can() == {"resume", "kill", "fork"}
    ask("POST", f"{path}/resume", {})
    world.fail(thread)
    assert can() == {"pause", "retry", "kill", "fork"}
    ask("POST", f"{path}/retry", {"hint": "try this"})
    world.step(thread)
    assert can() == {"pause", "poke", "kill", "fork", "run"}
    told = ask("POST", f"{path}/poke", {"hint": "better"})
    assert told == {"thread": thread, "tip": told["tip"], "driver": None, "refused": None}
    assert ask("POST", f"{path}/fork", {"reason": "aside"})["thread"] != thread
    ask("POST", f"{path}/kill", {"reason": "enough"})
    assert can() == {"fork"}
    with pytest.raises(UwfError):
        ask("POST", f"{path}/pause", {})
    with refuses("bad-body", match="a text is needed"):
        ask("POST", f"{path}/interrupt", {})


def test_no_step_is_taken_back_that_no_driver_could_take_again(ask: Ask, world: World) -> None:
    thread = world.stepped(says({"text": "one"}, usage={"inputTokens": 5}))
    world.amend(thread, limits={"maxTokens": 1})
    before = world.tip(thread)

    with refuses("limit-reached"):
        ask("POST", f"/api/threads/{thread}/poke", {"hint": "better", "go": True})

    assert world.tip(thread) == before


def test_state_and_limits_are_changed(ask: Ask, world: World, thread: ThreadId) -> None:
    path = f"/api/threads/{thread}"

    ask("POST", f"{path}/patch", {"patch": {"tone": "warm"}, "reason": "too cold"})
    ask("POST", f"{path}/amend", {"limits": {"maxSteps": 3, "maxCost": None}, "reason": "thrift"})
    assert world.snapshot(thread).body == "thrift"

    seen = ask("GET", path)
    assert "warm" in seen["state"]["html"]
    assert (seen["limitValues"], {"patch", "amend"} <= set(seen["can"])) == ({"maxSteps": 3}, True)
    for verb, body, code in (
        ("patch", {"patch": "x"}, "bad-body"),
        ("patch", {}, "bad-patch"),
        ("amend", {"limits": {"maxSteps": -1}}, "bad-limit"),
        ("amend", {"limits": [1]}, "bad-body"),
        ("amend", {}, "nothing-to-amend"),
    ):
        with refuses(code) as refused:
            ask("POST", f"{path}/{verb}", body)
        assert not str(refused.value.hint).startswith("give --")


def test_agent_is_changed_to_all_of_a_trusted_one_alone(ask: Ask, world: World) -> None:
    world.put()
    own = 'writer={"command": "nobody", "env": {"A": "b"}, "timeout": 60}'
    thread = world.start(own, "checker=nobody", workflow="demo")
    path = f"/api/threads/{thread}"
    agent = {"command": "true", "env": {"C": "d"}}
    trust_agents(world.store, [agent], world.caller.cwd)
    rows = ask("GET", "/api/agents", thread=thread)["agents"]
    offered = {each["command"]: each["id"] for each in rows}

    ask("POST", f"{path}/amend", {"agents": {"writer": offered["true"]}})

    snapshot = world.snapshot(thread)
    assert snapshot.get_node(snapshot.get_present().binding["writer"]).payload == agent
    trusted = [each.agent for each in list_trusted(world.store)]
    assert {"command": "true", "env": {"A": "b", "C": "d"}} not in trusted
    for agents in ({"writer": "touch marker"}, {"nobody": offered["true"]}):
        with refuses("bad-body"):
            ask("POST", f"{path}/amend", {"agents": agents})


def test_thread_with_no_role_left_ends_by_the_click(ask: Ask, world: World) -> None:
    ended = world.stepped(says({"text": "a text"}), says({"ok": True}))
    forked = ask("POST", f"/api/threads/{ended}/fork", {})["thread"]
    assert ask("GET", f"/api/threads/{forked}")["next"] == "$END"

    assert ask("POST", f"/api/threads/{forked}/run", {})["driver"] is None

    assert ask("GET", f"/api/threads/{forked}")["status"] == "completed"


def requests(start_driver: mock.Mock) -> list[DriverRequest]:
    return [call.args[2] for call in start_driver.call_args_list]


def test_a_drive_waits_for_usage_limits(ask: Ask, world: World, start_driver: mock.Mock) -> None:
    thread = world.begun()
    start_driver.side_effect = [Driver(world.snapshot(thread).record.workflow, thread, 1, "log")]
    assert ask("POST", f"/api/threads/{thread}/run", {})["driver"] == {"pid": 1, "log": "log"}
    (request,) = requests(start_driver)
    assert request.wait
    assert "--wait" in request.argv(thread)


def test_a_branch_goes_on_with_its_whole_thread(
    ask: Ask, world: World, start_driver: mock.Mock
) -> None:
    split = split_checks(world, f"{CHECKS}agentOverrides: {{reviewer: human, tester: human}}\n")
    start_driver.side_effect = [
        Refused("a branch waits for a person", code="driver-ended"),
        Driver(split.tip.record.workflow, split.thread, 1, "log"),
    ]
    for child in split.children:
        world.step(child)

    def answer(child: ThreadId) -> Any:
        question = ask("GET", f"/api/threads/{child}/question")["question"]
        body = {"question": question, "meta": {}, "go": True}
        replied = ask("POST", f"/api/threads/{child}/answer", body)
        assert world.snapshot(child).record.status == "completed"
        return replied["driver"], replied["refused"]

    assert [answer(child) for child in split.children] == [
        (None, None),
        ({"pid": 1, "log": "log"}, None),
    ]
    assert [each.thread for each in requests(start_driver)] == [split.thread] * 2


def test_a_branch_goes_on_alone_beside_one_that_has_a_driver(
    ask: Ask, world: World, start_driver: mock.Mock
) -> None:
    split = split_checks(world)
    start_driver.side_effect = [
        ThreadBusy(split.children[1], {}),
        Driver(split.tip.record.workflow, split.thread, 1, "log"),
    ]
    branch = split.children[0]

    assert ask("POST", f"/api/threads/{branch}/run", {})["driver"] == {"pid": 1, "log": "log"}
    assert [each.thread for each in requests(start_driver)] == [split.thread, branch]


def test_a_click_never_trusts(ask: Ask, world: World) -> None:
    marker = world.place / "ran"
    bad = world.program(f"touch {marker}")
    world.put(f"{DEMO}defaultAgent: {bad}\n")
    assert world.store.trust_file is not None
    os.unlink(world.store.trust_file)
    seen = ask("GET", "/api/workflows/demo")
    assert [role["problem"] for role in seen["roles"]] == [f"{bad} is not trusted here"] * 2
    assert ask("GET", "/api/agents")["agents"][-1]["command"] == "human"

    with refuses("not-started-here") as refused:
        ask("POST", "/api/threads", {"workflow": "demo", "prompt": "Do it."})

    assert "uwf agent trust --workflow demo" in str(refused.value.hint)
    with refuses("bad-body", match="no agent that is trusted here"):
        ask("POST", "/api/threads", {"workflow": "demo", "agents": {"writer": "0" * 16}})
    assert ask("GET", "/api/threads")["rows"] == []
    assert not marker.exists()


def test_start_takes_what_is_trusted(ask: Ask, world: World) -> None:
    world.put()
    trust_agents(world.store, [{"command": "true", "timeout": 60}], world.caller.cwd)
    agents = {each["command"]: each["id"] for each in ask("GET", "/api/agents")["agents"]}
    chosen = {"writer": agents["true"], "checker": agents["human"]}

    made = ask("POST", "/api/threads", {"workflow": "demo", "prompt": "Do it.", "agents": chosen})

    seen = ask("GET", f"/api/threads/{made['thread']}")
    assert seen["agents"] == {"writer": "true", "checker": "human"}
    assert (seen["title"], seen["status"]) == ("Do it.", "ready")
    with pytest.raises(UwfError, match="the prompt is empty"):
        ask("POST", "/api/threads", {"workflow": "demo", "agents": chosen})


def test_all_roles_that_nobody_can_play_are_named(ask: Ask, world: World) -> None:
    listed: list[Any] = [{"command": "python:write"}, {"command": "human", "timeout": 60}]
    trust_agents(world.store, listed, world.caller.cwd)
    world.put(f"{DEMO}agentOverrides: {{writer: 'python:write'}}\n")
    assert [each["command"] for each in ask("GET", "/api/agents")["agents"]] == ["human"]

    with refuses("not-started-here") as refused:
        ask("POST", "/api/threads", {"workflow": "demo", "prompt": "Do it.", "go": True})

    details = refused.value.facts["details"]
    assert [each["pointer"] for each in details] == ["/agents/writer", "/agents/checker"]
    human = ask("GET", "/api/agents")["agents"][0]["id"]
    world.put(f"{DEMO}defaultAgent: human\n")
    seen = ask("GET", "/api/workflows/demo")["roles"]
    assert [(each["agentId"], each["problem"]) for each in seen] == [(human, None)] * 2


@pytest.mark.parametrize(
    "name", ["", "nobody", "touch marker;", '{"command": "touch marker"} #', "writer=true"]
)
def test_agents_are_for_roles_alone(ask: Ask, world: World, name: str) -> None:
    world.put()
    human = ask("GET", "/api/agents")["agents"][-1]["id"]
    agents = {"writer": human, "checker": human, name: human}

    with refuses("bad-body", match="no such role"):
        ask("POST", "/api/threads", {"workflow": "demo", "prompt": "Do it.", "agents": agents})

    assert ask("GET", "/api/threads")["rows"] == []


def test_what_is_refused_was_not_recorded(ask: Ask, thread: ThreadId) -> None:
    tip = ask("GET", f"/api/threads/{thread}")["tip"]
    human = ask("GET", "/api/agents")["agents"][-1]["id"]
    body = {"workflow": "demo", "prompt": "Do it.", "agents": {"writer": human, "checker": human}}

    for path, more in ((f"/api/threads/{thread}/pause", {}), ("/api/threads", body)):
        with refuses("bad-body", match="go: true or false"):
            ask("POST", path, {**more, "go": "yes"})

    assert [row["thread"] for row in ask("GET", "/api/threads")["rows"]] == [thread]
    assert ask("GET", f"/api/threads/{thread}")["tip"] == tip


def test_log_of_a_failed_attempt_is_numbered(ask: Ask, world: World, thread: ThreadId) -> None:
    world.fail(thread, fails(stderr=b"one\ntwo \x1b[31m\n"))

    seen = ask("GET", f"/api/threads/{thread}/log")

    assert [(line["n"], line["text"]) for line in seen["lines"]] == [
        (1, "one"),
        (2, "two \\x1b[31m"),
    ]
    assert (seen["next"], seen["isRunning"]) == (3, False)
    assert ask("GET", f"/api/threads/{thread}/log", after="3")["lines"] == []
    with refuses("bad-body"):
        ask("GET", f"/api/threads/{thread}/log", after="x")
