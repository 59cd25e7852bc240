"""More roles and transitions for one thread that is under way, and for no other."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands.turns import branches, drive, log, script
from commands.world import DEMO, World, content_player, says
from refusing import refuses

from uwf_git.commands.control.answer import PersonAnswer
from uwf_git.commands.control.append import AppendRequest, append_to_thread
from uwf_git.commands.control.change_rules import Amended
from uwf_git.commands.turn.branches import ThreadNotActive, WrongStatus
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.workflow.history import show_workflow
from uwf_git.model.definition.definition import InvalidWorkflow
from uwf_git.model.names import ThreadId
from uwf_git.model.yaml_reader import BadYaml
from uwf_git.store.threads.local_files import ThreadBusy
from uwf_git.store.trust import is_trusted

DOCS = """\
roles:
  doc-writer: {systemPrompt: Document it.}
moderator:
  - {from: checker, to: doc-writer, when: meta.ok}
  - {from: doc-writer, to: $END}
"""


def append(world: World, thread: str, text: str = DOCS, **asked: Any) -> Amended:
    request = AppendRequest(thread, text.encode(), **asked)
    return append_to_thread(world.store, world.caller, request)


def test_thread_goes_on_past_its_old_end(world: World) -> None:
    """Seed 004: if it is approved, append doc-writer."""
    thread = world.stepped(times=2)

    amended = append(world, thread, default_agent="uwf-docs", reason="The API changed.")

    assert (amended.name, amended.agents) == ("demo", {"doc-writer": "uwf-docs"})
    assert world.snapshot(thread).body == "The API changed."
    assert world.step(thread, says({})).role == "doc-writer"
    assert world.step(thread).status == "completed"
    world.assert_whole()


def test_file_may_include_others_beside_it(world: World, thread: ThreadId) -> None:
    (world.place / "prompt.md").write_text("Document it well.\n")
    text = DOCS.replace("Document it.", "!include prompt.md")

    amended = append(world, thread, text, path=str(Path(world.place, "docs.yaml")))

    shown = show_workflow(world.store, amended.workflow)
    assert shown["roles"]["doc-writer"]["systemPrompt"] == "Document it well.\n"
    with pytest.raises(BadYaml, match="standard input has no folder"):
        append(world, thread, text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("roles: {lonely: }", r"line 1 \(roles.lonely\): no path from \$START leads to this role"),
        ("name: x", "cannot be appended"),
    ],
)
def test_file_that_is_not_right_changes_nothing(text: str, told: str, world: World) -> None:
    thread = world.begun()
    before = world.tip(thread)

    with pytest.raises(InvalidWorkflow, match=told):
        append(world, thread, text + "\nagentOverrides: {writer: bad}\n")

    assert world.tip(thread) == before
    assert not is_trusted(world.store, {"command": "bad"}, world.caller.cwd)


def test_the_role_that_waits_for_a_person_becomes_no_workflows(world: World) -> None:
    """Else its answer would be a person's, and the workflow never begin."""
    world.put(DEMO.replace("name: demo", "name: inner"))
    thread = world.waiting()
    addition = "roles: {checker: {workflow: inner, outputSchema: true}}"

    with refuses("wrong-status", match="waits for checker, which a workflow would play") as caught:
        append(world, thread, addition)

    assert world.events(thread)[-1] == "wait"
    # As the hint says.
    assert f"`uwf thread answer {thread}`) first; or `uwf thread fork" in (caught.value.hint or "")
    fork = world.fork(thread)
    append(world, fork, addition)
    assert world.step(fork).status == "split"
    world.answer(thread, PersonAnswer({"ok": False}))
    append(world, thread, addition)
    world.assert_whole()


def test_nothing_is_appended_while_a_step_is_under_way_or_after_the_end(world: World) -> None:
    thread = world.begun()

    def play(turn: Turn) -> Played:
        with pytest.raises(ThreadBusy):
            append(world, thread)
        return content_player(turn)

    world.step(thread, play)
    world.kill(thread)
    with pytest.raises(ThreadNotActive):
        append(world, thread)


# `uwf thread append` to flows: nodes after the root or in a container, for one thread alone.

FLOW = """\
name: flow
initialState: {code: x}
root:
  type: sequential
  id: all
  nodes:
    - type: loop
      name: passes
      maxIterations: 2
      nodes: [{type: agent, agentId: one}]
    - type: parallel
      id: checks
      nodes: [{type: agent, agentId: two}, {type: agent, agentId: three}]
"""

TWO = "{type: sequential, id: two, nodes: [{type: agent, agentId: two}]}"

DOCS_NODES = [{"type": "agent", "agentId": "doc-writer", "input": "${state.code}"}]


def append_nodes(world: World, thread: ThreadId, addition: Any, **options: Any) -> None:
    source = addition if isinstance(addition, str) else json.dumps(addition)
    request = AppendRequest(thread, source.encode(), default_agent="nobody", **options)
    append_to_thread(world.store, world.caller, request)


def done(world: World, thread: ThreadId) -> list[str]:
    driven, roles = drive(world, thread, script())
    assert driven.stopped == "end"
    world.assert_sound(thread)
    return roles


def test_what_would_never_run_is_refused(world: World) -> None:
    thread = world.stepped(script(), source=FLOW, times=3)
    four = [{"type": "agent", "agentId": "four"}]

    for to in ("passes", "checks"):
        with refuses("container-left", match=f"has left '{to}'"):
            append_nodes(world, thread, four, to=to)

    assert log(world, thread)[-1] == "split 0/1 split"


def test_a_fork_of_a_branch_ends_where_that_does(world: World) -> None:
    thread = world.begun(FLOW.replace("{type: agent, agentId: two}", TWO))
    for _ in range(4):
        world.step(thread, script())
    fork = world.fork(branches(world, thread)[0])

    for to in (None, "all", "checks"):
        with refuses("container-left", match="would never run"):
            append_nodes(world, fork, DOCS_NODES, to=to)
    append_nodes(world, fork, DOCS_NODES, to="two")

    assert done(world, fork) == ["doc-writer"]


def test_a_parallel_in_a_loop_gets_a_branch_for_the_next_pass(world: World) -> None:
    thread = world.begun("""\
name: again
root:
  type: loop
  maxIterations: 2
  nodes:
    - type: parallel
      id: checks
      nodes: [{type: agent, agentId: two}, {type: agent, agentId: three}]
""")
    world.step(thread, script())

    append_nodes(world, thread, [{"type": "agent", "agentId": "four"}], to="checks")

    joins = [each for each in done(world, thread) if "completed" in each]
    assert joins == ["checks: 2 completed", "checks: 3 completed"]


def test_branches_that_run_a_workflow_share_no_file_with_a_new_one(world: World) -> None:
    files = "roles: {one: {outputFile: x.json}}\n"
    world.put(f"name: part\n{files}root: {{type: agent, agentId: one}}\n")
    thread = world.begun(FLOW.replace("{type: agent, agentId: two}", "{type: workflow, use: part}"))
    world.put("name: part\nroot: {type: agent, agentId: one}\n")
    more = {"nodes": [{"type": "agent", "agentId": "four"}]}

    with refuses(InvalidWorkflow, match=r"would write 'x\.json' at once"):
        append_nodes(
            world, thread, {**more, "roles": {"four": {"outputFile": "./x.json"}}}, to="checks"
        )
    append_nodes(world, thread, more, to="checks")


@pytest.mark.parametrize(
    ("addition", "to", "error", "told"),
    [
        (DOCS_NODES, "nowhere", "no-such-container", "is no id or name"),
        ([], None, InvalidWorkflow, "an empty list"),
        ({"roles": {"one": {}}}, None, InvalidWorkflow, "must be a list"),
        (
            {"nodes": DOCS_NODES, "name": "x"},
            None,
            InvalidWorkflow,
            "belongs to the whole workflow",
        ),
        ([{"type": "agent"}], None, InvalidWorkflow, "'agentId' is missing"),
        (
            [{"type": "loop", "id": "checks", "nodes": DOCS_NODES}],
            None,
            InvalidWorkflow,
            "second node",
        ),
    ],
)
def test_what_cannot_be_appended_is_told(
    world: World, addition: Any, to: str | None, error: str | type[Exception], told: str
) -> None:
    thread = world.begun(FLOW)

    with refuses(error, match=told):
        append_nodes(world, thread, addition, to=to)

    assert log(world, thread) == ["start ready"]


def test_an_agent_and_a_graph_have_no_place_for_nodes(world: World) -> None:
    thread = world.begun(FLOW.replace("agentId: one", "agentId: one, id: first"))
    with refuses("no-such-container", match="holds no nodes"):
        append_nodes(world, thread, DOCS_NODES, to="first")
    with refuses("no-such-container", match="is a graph"):
        append_nodes(world, world.begun(), DOCS_NODES, to="first")
    with pytest.raises(InvalidWorkflow, match="roles and moderator"):
        append_nodes(world, world.begun(), DOCS_NODES)


def test_a_branch_gets_nothing(world: World) -> None:
    thread = world.stepped(script(), source=FLOW, times=4)
    with pytest.raises(WrongStatus, match="is a branch"):
        append_nodes(world, branches(world, thread)[0], DOCS_NODES)
