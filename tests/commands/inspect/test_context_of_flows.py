"""What an agent in a flow is given: its place, its input, and the steps before its branch."""

from typing import Any

from commands.step.test_flows import CHECKS, ITEMS, LOOP, drive, script
from commands.world import World, fails, replied
from refusing import refuses

from uwf_git.commands.agent_run.runs import describe_turn
from uwf_git.commands.control.steer import patch_thread
from uwf_git.commands.inspect.context import (
    get_context,
    get_past_context,
    load_thread_context,
    render_prompt,
)
from uwf_git.commands.lifecycle.fork import find_fork_point
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import get_head

NESTED = """\
name: nested
description: A branch in an item, after two steps.
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


def test_past_turn_has_the_place_that_it_had(world: World) -> None:
    thread = world.begun(LOOP)
    seen = Seen(reviewer=[{"ok": False}, {"ok": True}])
    drive(world, thread, seen)
    head = get_head(world.store, thread)

    given = [
        get_past_context(world.store, find_fork_point(world.store, head, str(step)))
        for step in (2, 4)
    ]

    # An ended thread has no work directory any more.
    assert given == [{**each, "workdir": None} for each in seen.contexts["reviewer"]]


def test_item_has_its_input_and_the_item(world: World) -> None:
    thread = world.begun(ITEMS)
    seen = Seen()

    drive(world, thread, seen)

    given = sorted((each["input"], each["state"]["file"]) for each in seen.contexts["reader"])
    assert given == [("read a", "a"), ("read b", "b"), ("read c", "c")]
    prompt = render_prompt(seen.contexts["reader"][0])
    assert "# What this turn is about\n\n<input>\nread " in prompt
    assert "You work in a branch" in prompt


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


def test_branch_of_a_branch_has_the_steps_of_all_around_it(world: World) -> None:
    thread = world.begun(NESTED)
    seen = Seen(reader="read")

    drive(world, thread, seen)

    steps = seen.contexts["other"][0]["steps"]
    assert [step["role"] for step in steps] == ["planner", "coder", "reader"]
    assert [steps[-1]["role"], steps[0]["role"]] == ["reader", "planner"]
    assert sorted(each["input"] for each in seen.contexts["one"]) == [
        "a after read",
        "b after read",
    ]


def branch_of(world: World, thread: ThreadId, number: int) -> ThreadId:
    split = world.snapshot(thread).get_present().split
    assert split is not None
    return split.children[number].thread


def test_branch_is_read_the_same_when_it_was_joined(world: World) -> None:
    thread = world.begun(CHECKS)
    seen = Seen()
    for _ in range(3):
        world.step(thread, seen)
    branch = branch_of(world, thread, 1)

    drive(world, thread, seen)

    point = find_fork_point(world.store, get_head(world.store, branch), "2")
    tester = seen.contexts["tester"][0]
    assert get_past_context(world.store, point) == {**tester, "workdir": None}


def test_split_thread_has_no_turn_of_its_own(world: World) -> None:
    thread = world.begun(CHECKS)
    world.step(thread, script())
    with refuses("not-its-turn", match="goes on in branches: checks"):
        get_context(world.store, thread)
    world.step(thread, script())
    with refuses("not-its-turn", match="goes on in branches: checks") as caught:
        get_context(world.store, thread)
    assert caught.value.hint == f"`uwf thread show {thread}` lists them"


def test_errors_are_those_of_the_same_place(world: World) -> None:
    thread = world.begun(CHECKS)
    world.step(thread, script())
    world.step(thread, script())

    def play(turn: Turn) -> Played:
        return fails("no luck")(turn) if turn.role == "reviewer" else replied({})

    world.step(thread, play)

    context = get_context(world.store, branch_of(world, thread, 0))
    assert (context["attempt"], context["lastError"]["message"]) == (2, "no luck")
    assert [step["role"] for step in context["steps"]] == ["coder"]


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
        patch_thread(world.store, world.caller, thread, {"ok": True})
        given.append(get_context(world.store, thread, role=turn.role))
        return replied({})

    before = get_context(world.store, thread, role="coder")
    world.step(thread, play)

    assert [before["node"]["label"], before["input"]] == ["bad", "it is false"]
    assert [given[0]["node"]["label"], given[0]["input"]] == ["bad", "it is true"]
    assert "You act as its node bad." in render_prompt(given[0])
