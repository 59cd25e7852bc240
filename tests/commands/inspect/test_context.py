"""What an agent in a flow is given: its place, its input, and the steps before its branch."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from commands.step.test_record_turn import CHECKS, ITEMS, LOOP, drive
from commands.turns import BAD, PLANS, branches, script, take
from commands.world import DEMO, World, content_player, fails, read_thread, replied, says
from refusing import refuses

from uwf_git.agentkit.llm.tools import ToolArguments, fetch_thread
from uwf_git.cli.output.screen import Screen
from uwf_git.cli.thread.show import _text
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.runs import describe_turn
from uwf_git.commands.control.answer import build_page, patch_thread
from uwf_git.commands.inspect.context import (
    find_begun,
    find_wait,
    first_question_line,
    get_context,
    get_past_context,
    load_thread_context,
    render_prompt,
    tell_given,
    view_question,
    view_waiting,
)
from uwf_git.commands.inspect.graph import picture_thread, view_report
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.start import find_fork_point
from uwf_git.commands.turn.branches import begin_branch
from uwf_git.commands.turn.turn import Played, StepFiles, Turn
from uwf_git.engine.turn_context import parse_context
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import get_head
from uwf_git.web.report import render_report

Golden = Callable[[str, str], None]


def as_json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def test_first_turn_has_the_task_and_the_role(
    world: World, thread: ThreadId, golden: Golden
) -> None:
    context = get_context(world.store, thread)

    assert context["workdir"] == str(world.place)
    golden("commands/context.json", as_json(context | {"workdir": None}))


def test_context_of_a_past_step_is_what_its_agent_was_given(world: World) -> None:
    thread = world.begun(DEMO + "initialState: {level: 1}\n")
    given: list[dict[str, Any]] = []

    def play(turn: Turn) -> Played:
        given.append(get_context(turn.store, turn.thread))
        # It came while the agent worked, in the same second.
        now_ms = world.caller.now_ms() // 1000 * 1000 + 500
        late = world.caller._replace(now_ms=lambda: now_ms)
        patch_thread(world.store, late, thread, {"level": 2})
        return content_player(turn)._replace(started_ms=now_ms - 1)

    first = world.step(thread, play)
    world.fail(thread, fails("no key"))
    tried = world.tip(thread)
    world.step(thread)
    world.step(thread)
    head = get_head(world.store, thread)
    assert head.archived

    past = get_past_context(world.store, find_fork_point(world.store, head, "1"))

    assert past == given[0] | {"workdir": None}
    assert past["state"] == {"level": 1}
    attempt = get_past_context(world.store, find_fork_point(world.store, head, tried))
    assert (attempt["role"]["name"], attempt["attempt"]) == ("checker", 1)
    checked = get_past_context(world.store, find_fork_point(world.store, head, "2"))
    assert (checked["head"], checked["attempt"]) == (first.head, 2)
    assert checked["lastError"]["message"] == "no key"


def test_commit_that_no_agent_made_has_no_context(world: World) -> None:
    snapshot = world.snapshot(world.begun())

    with refuses("no-turn-there", match="is a start"):
        get_past_context(world.store, snapshot)


NESTED = """\
name: nested
initialState: {files: [a, b]}
root:
  type: sequential
  nodes:
    - {type: agent, agentId: planner}
    - {type: agent, agentId: coder}
    - type: map
      name: each
      over: state.files
      as: file
      nodes:
        - {type: agent, agentId: reader}
        - type: parallel
          nodes:
            - {type: agent, agentId: one, input: "${file} after ${state.readerOutput}"}
            - {type: agent, agentId: other}
"""


class Seen:
    """A player that keeps what each role was given, as the kit and as a person read it."""

    def __init__(self, **answers: Any) -> None:
        self.contexts: dict[str, list[dict[str, Any]]] = {}
        self._play = script(**answers)

    def __call__(self, turn: Turn) -> Played:
        context = load_thread_context(turn.store.path, turn.thread, role=turn.role)
        self.contexts.setdefault(turn.role, []).append(context)
        return self._play(turn)


def test_turn_knows_its_node_and_its_pass(world: World) -> None:
    thread = world.begun(LOOP)
    seen = Seen(reviewer=[{"ok": False}, {"ok": True}])

    drive(world, thread, seen)

    first, second = seen.contexts["reviewer"]
    assert first["node"] == {"label": "reviewer", "at": "0.1/1"}
    assert (first["iteration"], first["state"]["iteration"]) == (0, 0)
    assert second["node"]["at"] == "0.2/1"
    assert (second["iteration"], second["state"]["iteration"]) == (1, 1)
    assert "It is the 2nd pass of the loop" in render_prompt(second)
    assert first["input"] is None


def test_agent_after_a_place_that_was_given_up_is_told_of_no_failure(world: World) -> None:
    one, two = ("{type: agent, agentId: one, onError: continue}", "{type: agent, agentId: two}")
    thread = world.begun(f"name: work\nroot: {{type: sequential, nodes: [{one}, {two}]}}\n")
    world.fail(thread)

    assert get_context(world.store, thread)["lastError"] is None
    shown = show_thread(world.store, thread)
    assert (shown["error"], shown["reason"]) == (None, "one was given up: exit status 7")
    world.fail(thread)
    assert show_thread(world.store, thread)["error"]["message"] == "exit status 7"


def test_item_has_its_input_and_the_item(world: World) -> None:
    thread = world.begun(ITEMS)
    seen = Seen()

    drive(world, thread, seen)

    given = sorted((each["input"], each["state"]["file"]) for each in seen.contexts["reader"])
    assert given == [("read a", "a"), ("read b", "b"), ("read c", "c")]
    prompt = render_prompt(seen.contexts["reader"][0])
    assert "# What this turn is about\n\n<input>\nread " in prompt
    assert "You work in a branch" in prompt


def test_fork_of_a_branch_works_in_no_branch(world: World) -> None:
    branch = begin_branch(world.store, world.snapshot(world.stepped(source=ITEMS)), 0)
    for each, is_branch in ((branch, True), (world.fork(branch), False)):
        prompt = render_prompt(get_context(world.store, each))
        assert ("You work in a branch" in prompt) is is_branch


def test_branch_has_the_steps_before_its_split(world: World) -> None:
    thread = world.begun(CHECKS)
    seen = Seen(coder="x = 1", builder="built")

    drive(world, thread, seen)

    def roles(role: str) -> list[str]:
        return [step["role"] for step in seen.contexts[role][0]["steps"]]

    assert roles("reviewer") == ["coder"]
    assert roles("tester") == ["coder", "builder"]
    assert roles("closer") == ["coder", "checks"]
    tester = seen.contexts["tester"][0]
    assert (tester["depth"], tester["steps"][0]["content"]) == (1, "x = 1")
    assert "This is step 3 of a thread" in render_prompt(tester)
    closer = seen.contexts["closer"][0]
    assert [each["role"] for each in closer["steps"][-1]["branches"]] == ["reviewer", "tester"]
    assert "### A branch of it: tester" in render_prompt(closer)


VERIFIED = """\
name: verified
initialState: {l: [1]}
root: {type: map, over: state.l, as: i, nodes: [
  {type: agent, agentId: coder, verifiedBy: {agentId: judge, when: meta.ok}}]}
"""
USING = "name: u\nroot: {type: sequential, nodes: [%s, {type: agent, agentId: closer}]}\n"
PLAYED = """\
name: t
roles: {r: {workflow: verified, outputSchema: true}, closer: {outputSchema: true}}
moderator: [{from: $START, to: r}, {from: r, to: closer}, {from: closer, to: $END}]
"""


@pytest.mark.parametrize("source", [USING % "{type: workflow, use: verified}", PLAYED])
def test_text_of_verified_work_reaches_who_comes_after_the_join(world: World, source: str) -> None:
    world.put(VERIFIED)
    thread = world.begun(source)
    seen = Seen(coder="Line 42 is wrong.", judge={"ok": True})

    drive(world, thread, seen)

    context = parse_context(seen.contexts["closer"][0])
    said = [(each.role, each.meta) for each in context.steps[-1].branches]
    assert said == [("coder", {}), ("judge", {"ok": True})]
    told = (build_page(context), fetch_thread(context, ToolArguments("fetch_thread", {"step": 1})))
    assert all("coder: {}\nLine 42 is wrong." in each for each in told)


def test_conversation_is_given_only_where_it_can_go_on(world: World, thread: ThreadId) -> None:
    def sessions(thread: ThreadId) -> list[str | None]:
        return [step.get("session") for step in get_context(world.store, thread)["steps"]]

    for number, meta in enumerate([{"text": "a"}, {"ok": False}, {"text": "b"}]):
        world.step(thread, says(meta, session=f"s{number}"))
    fork = world.fork(thread, "2")
    world.step(fork, says({"text": "c"}, session="s3"))
    assert (sessions(thread), sessions(fork)) == (["s0", "s1", "s2"], [None, None, "s3"])

    # Without its newest turn, which the conversation holds.
    world.poke(thread)
    assert sessions(thread) == [None, None]
    world.step(thread, says({"text": "d"}, session="s4"))
    world.patch(thread, {"a": 1})
    assert sessions(thread) == [None, None, "s4"]

    # An agent that is tried again still knows it; no later turn, as no step has what a try spent.
    world.step(thread, says({"ok": False}, session="s5"))
    world.fail(thread)
    assert sessions(thread) == [None, None, "s4", "s5"]
    world.step(thread, says({"text": "e"}, session="s6"))
    assert sessions(thread) == [None, None, "s4", "s5", "s6"]
    world.step(thread, says({"ok": False}, session="s7"))
    assert sessions(thread) == [None, None, None, "s5", "s6", "s7"]

    split = world.stepped(says({}, session="s8"), source=CHECKS)
    world.step(split)
    assert sessions(begin_branch(world.store, world.snapshot(split), 0)) == [None]


def branch_of(world: World, thread: ThreadId, number: int) -> ThreadId:
    return branches(world, thread)[number]


def test_split_thread_has_no_turn_of_its_own(world: World) -> None:
    thread = world.stepped(script(), source=CHECKS)
    with refuses("not-its-turn", match="goes on in branches: checks"):
        get_context(world.store, thread)
    world.step(thread, script())
    with refuses("not-its-turn", match="goes on in branches: checks") as caught:
        get_context(world.store, thread)
    assert caught.value.hint == f"`uwf thread show {thread}` lists them"
    for row in show_thread(world.store, thread)["branches"]:
        world.step(row["thread"], script())
    while world.snapshot(thread).record.event != "join":
        world.step(thread, script())
    with refuses("no-turn-there", match="is a join"):
        get_past_context(world.store, world.snapshot(thread))


FORKING = """\
name: forking
description: One agent at either of two places.
initialState: {ok: false}
root:
  type: conditional
  condition: state.ok
  nodes: [{type: agent, agentId: coder, id: good}]
  else: [{type: agent, agentId: coder, id: bad, input: "it is ${state.ok}"}]
"""


def test_agent_keeps_its_place_when_the_route_changes_meanwhile(world: World) -> None:
    thread = world.begun(FORKING)
    given: list[dict[str, Any]] = []

    def play(turn: Turn) -> Played:
        turn.run_dir.begin(describe_turn(turn))
        world.patch(thread, {"ok": True})
        given.append(get_context(world.store, thread, role=turn.role))
        return replied({})

    before = get_context(world.store, thread, role="coder")
    world.step(thread, play)

    assert [before["node"]["label"], before["input"]] == ["bad", "it is false"]
    assert [given[0]["node"]["label"], given[0]["input"]] == ["bad", "it is true"]
    assert "You act as its node bad." in render_prompt(given[0])


# A turn that has begun has the output file that it began with, whatever was patched since.


GRAPH = """
name: reporting
initialState: {file: a.json}
roles:
  writer: {outputSchema: {type: object}, outputFile: "${state.file}"}
  closer: {outputSchema: {type: object}, outputFile: "${state.file}"}
moderator: [{from: $START, to: writer}, {from: writer, to: closer}, {from: closer, to: $END}]
"""


class EngineDied(BaseException):
    """The engine is killed after its agent has finished."""


def test_file_of_a_turn_that_has_begun_stays_where_it_was(world: World) -> None:
    thread = world.start(world.program("echo '{\"meta\": {}}'"), workflow=world.put(GRAPH).workflow)

    def play(turn: Turn) -> Played:
        agent_player(None)(turn)
        raise EngineDied

    with pytest.raises(EngineDied):
        world.step(thread, play)
    world.patch(thread, {"file": "b.json"})

    def file_of(role: str) -> object:
        return get_context(world.store, thread, role=role)["role"]["outputFile"]

    assert (file_of("writer"), file_of("closer")) == ("a.json", "b.json")
    assert find_begun(world.store, world.snapshot(thread), "closer") is None


UNTIL_MS = 4_000_000_000_000


def test_question_has_all_that_an_agent_gets(world: World, golden: Golden) -> None:
    snapshot = world.snapshot(world.waiting())

    question = view_question(world.store, snapshot, snapshot.get_present())
    golden("commands/question.json", as_json(question))
    assert first_question_line(snapshot, snapshot.get_present()) == "Checks."


def test_wait_began_before_the_thread_was_steered(world: World) -> None:
    thread = world.waiting()
    asked = world.snapshot(thread).commit.time_s * 1000
    world.patch(thread, {"a": 1})
    world.pause(thread)
    world.resume(thread)
    snapshot = world.snapshot(thread)

    assert snapshot.commit.time_s * 1000 > asked
    assert find_wait(world.store, snapshot).commit.time_s * 1000 == asked
    told = view_waiting(world.store, snapshot, snapshot.get_present())
    assert told == {"role": "checker", "since": asked}


def test_thread_that_waits_for_a_limit_has_no_question(world: World, thread: ThreadId) -> None:
    world.fail(thread, fails("limit", left=StepFiles(reset_at=UNTIL_MS)))
    snapshot = world.snapshot(thread)
    present = snapshot.get_present()

    told = view_waiting(world.store, snapshot, present)
    assert told == {"role": "writer", "since": snapshot.commit.time_s * 1000, "until": UNTIL_MS}
    assert view_question(world.store, snapshot, present) is None
    assert first_question_line(snapshot, present) is None


def test_thread_that_does_not_wait_has_no_question(world: World) -> None:
    snapshot = world.snapshot(world.begun())
    present = snapshot.get_present()

    assert view_waiting(world.store, snapshot, present) is None
    assert view_question(world.store, snapshot, present) is None
    assert first_question_line(snapshot, present) is None


def test_person_is_asked_about_the_input_and_the_files_of_the_turn(world: World) -> None:
    files = "inputFiles: [here.md, gone.md]"
    source = ITEMS.replace('${file}"', f'${{file}} of ${{state.files.length}}", {files}')
    thread = world.begun(source, "human")
    (world.place / "here.md").write_text("long")
    world.step(thread)
    waiting = branches(world, thread)
    for branch in waiting:
        world.step(branch)
    asked = [show_thread(world.store, each)["question"] for each in waiting]
    assert [each["input"] for each in asked] == [f"read {item} of 3" for item in "abc"]
    named = [{"path": "here.md", "problem": None}, {"path": "gone.md", "problem": "is not there"}]
    assert asked[0]["inputFiles"] == named

    for each, branch in zip(asked, waiting, strict=True):
        told = f"{each['input']}\n\nFiles: `here.md`, `gone.md` (is not there)"
        assert tell_given(each) == told
        assert told in build_page(parse_context(get_context(world.store, branch)))
        shown = _text(show_thread(world.store, branch), Screen())
        assert told.replace("\n\n", "\n\n   ") in shown
    world.patch(waiting[0], {"files": None})
    assert show_thread(world.store, waiting[0])["question"]["input"].startswith("read ${file}")


def test_verifying_person_is_told_what_the_work_was_about(world: World) -> None:
    source = PLANS.replace('"Carry out ${state.plan.file}."', "{plan: '${state.plan}'}")
    thread = world.begun(source, "nobody", "verifier=human")
    world.step(thread, says({}))
    world.step(thread)
    shown = show_thread(world.store, thread)

    told = tell_given(shown["question"])
    assert told.startswith("What the work of executor was about:\n\n```json\n{")
    assert '"file": "000.md"' in told
    assert told in build_page(parse_context(get_context(world.store, thread)))
    assert "\nturn      verifier\n" in _text(shown, Screen())


# What is told of a try: by `thread show`, `read`, `graph` and `context`.


def test_show_tells_the_try(world: World) -> None:
    thread = world.begun(PLANS)
    take(world, thread, {}, BAD, {})
    view = show_thread(world.store, thread)["try"]
    assert view == {"number": 2, "of": 3, "node": "executor", "at": "0.1/0", "turn": "verifier"}
    take(world, thread, BAD)
    shown = show_thread(world.store, thread)
    assert shown["try"]["number"] == 3
    assert "3 of 3 at executor; it is the turn of executor" in _text(shown, Screen())
    take(world, thread, {}, BAD)
    shown = show_thread(world.store, thread)
    assert "all 3 at executor are used up" in _text(shown, Screen())
    assert "error     verifier rejected it: no tests" in _text(shown, Screen())
    assert shown["error"]["kind"] == "rejected"


def test_read_and_the_picture_tell_the_try(world: World) -> None:
    thread = world.begun(PLANS)
    take(world, thread, {}, BAD, {})
    facts = [line for line in read_thread(world.store, thread).splitlines() if " try " in line]
    assert [line.partition("try ")[2].partition(" ·")[0] for line in facts] == [
        "1",
        "1 rejected",
        "2",
    ]
    report = render_report(view_report(world.store, thread, {}))
    assert [report.count(f"<li>try {each}</li>") for each in ("1", "1 rejected", "2")] == [1, 1, 1]
    subject = picture_thread(world.store, thread)
    assert subject.thread is not None
    assert subject.thread.marks["0/0"].badge == "▶ try 2 of 3, verifier · ✓ 2"


def test_a_verifier_is_told_what_it_judges(world: World) -> None:
    thread = world.begun(PLANS)
    take(world, thread, {"completed": True})
    context = get_context(world.store, thread)
    assert context["role"]["name"] == "verifier"
    assert context["input"] is None
    prompt = render_prompt(context)
    assert "You judge the work of executor, which is the newest step above (try 1 of 3)" in prompt
    assert "<work>\nCarry out 000.md." in prompt
