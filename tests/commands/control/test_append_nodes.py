"""`uwf thread append` to flows: nodes after the root or in a container, for one thread alone."""

import json
from typing import Any

import pytest
from commands.flow_runs import branches, drive, log, script
from commands.world import World
from refusing import refuses

from uwf_git.commands.control.append import AppendRequest, append_to_thread
from uwf_git.commands.turn.branches import WrongStatus
from uwf_git.model.definition.definition import InvalidWorkflow
from uwf_git.model.names import ThreadId

FLOW = """\
name: flow
description: A loop, and what is done at once.
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

DOCS = [{"type": "agent", "agentId": "doc-writer", "input": "${state.code}"}]


def append(world: World, thread: ThreadId, addition: Any, **options: Any) -> None:
    source = addition if isinstance(addition, str) else json.dumps(addition)
    request = AppendRequest(thread, source.encode(), default_agent="nobody", **options)
    append_to_thread(world.store, world.caller, request)


def done(world: World, thread: ThreadId) -> list[str]:
    driven, roles = drive(world, thread, script())
    assert driven.stopped == "end"
    world.assert_sound(thread)
    return roles


def test_what_would_never_run_is_refused(world: World) -> None:
    thread = world.begun(FLOW)
    for _ in range(3):
        world.step(thread, script())
    four = [{"type": "agent", "agentId": "four"}]

    for to in ("passes", "checks"):
        with refuses("container-left", match=f"has left '{to}'"):
            append(world, thread, four, to=to)

    assert log(world, thread)[-1] == "split 0/1 split"


def test_a_fork_of_a_branch_ends_where_that_does(world: World) -> None:
    thread = world.begun(FLOW.replace("{type: agent, agentId: two}", TWO))
    for _ in range(4):
        world.step(thread, script())
    fork = world.fork(branches(world, thread)[0])

    for to in (None, "all", "checks"):
        with refuses("container-left", match="would never run"):
            append(world, fork, DOCS, to=to)
    append(world, fork, DOCS, to="two")

    assert done(world, fork) == ["doc-writer"]


def test_a_parallel_in_a_loop_gets_a_branch_for_the_next_pass(world: World) -> None:
    thread = world.begun("""\
name: again
description: Twice at once.
root:
  type: loop
  maxIterations: 2
  nodes:
    - type: parallel
      id: checks
      nodes: [{type: agent, agentId: two}, {type: agent, agentId: three}]
""")
    world.step(thread, script())

    append(world, thread, [{"type": "agent", "agentId": "four"}], to="checks")

    joins = [each for each in done(world, thread) if "completed" in each]
    assert joins == ["checks: 2 completed", "checks: 3 completed"]


def test_branches_that_run_a_workflow_share_no_file_with_a_new_one(world: World) -> None:
    files = "roles: {one: {outputFile: x.json}}\n"
    world.put(f"name: part\n{files}root: {{type: agent, agentId: one}}\n")
    thread = world.begun(FLOW.replace("{type: agent, agentId: two}", "{type: workflow, use: part}"))
    world.put("name: part\nroot: {type: agent, agentId: one}\n")
    more = {"nodes": [{"type": "agent", "agentId": "four"}]}

    with refuses(InvalidWorkflow, match=r"would write 'x\.json' at once"):
        append(world, thread, {**more, "roles": {"four": {"outputFile": "./x.json"}}}, to="checks")
    append(world, thread, more, to="checks")


@pytest.mark.parametrize(
    ("addition", "to", "error", "told"),
    [
        (DOCS, "nowhere", "no-such-container", "is no id or name"),
        ([], None, InvalidWorkflow, "an empty list"),
        ({"roles": {"one": {}}}, None, InvalidWorkflow, "must be a list"),
        ({"nodes": DOCS, "name": "x"}, None, InvalidWorkflow, "belongs to the whole workflow"),
        ([{"type": "agent"}], None, InvalidWorkflow, "'agentId' is missing"),
        ([{"type": "loop", "id": "checks", "nodes": DOCS}], None, InvalidWorkflow, "second node"),
    ],
)
def test_what_cannot_be_appended_is_told(
    world: World, addition: Any, to: str | None, error: str | type[Exception], told: str
) -> None:
    thread = world.begun(FLOW)

    with refuses(error, match=told):
        append(world, thread, addition, to=to)

    assert log(world, thread) == ["start ready"]


def test_an_agent_and_a_graph_have_no_place_for_nodes(world: World) -> None:
    thread = world.begun(FLOW.replace("agentId: one", "agentId: one, id: first"))
    with refuses("no-such-container", match="holds no nodes"):
        append(world, thread, DOCS, to="first")
    with refuses("no-such-container", match="is a graph"):
        append(world, world.begun(), DOCS, to="first")
    with pytest.raises(InvalidWorkflow, match="roles and moderator"):
        append(world, world.begun(), DOCS)


def test_a_branch_gets_nothing(world: World) -> None:
    thread = world.begun(FLOW)
    for _ in range(4):
        world.step(thread, script())
    with pytest.raises(WrongStatus, match="is a branch"):
        append(world, branches(world, thread)[0], DOCS)
