"""An agent that stays open is ended for what it has left in its file, if it may be ended."""

import pytest
from commands.world import World

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.step.record_turn import TurnInterrupted
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.local_files import get_run_dir

GRAPH = """
name: reporting
roles:
  writer:
    outputSchema: {type: object, required: [text], properties: {text: {type: string}}}
    outputFile: .state/status.json
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: $END}
"""
LEAVES = """mkdir -p .state; echo '{"text": "left"}' >.state/status.json; echo prose"""
STAYS = f"echo run >>runs; {LEAVES}; exec sleep 60"


class EngineDied(BaseException):
    """The engine is killed after its agent has finished."""


def begin(world: World, agent: str) -> ThreadId:
    return world.begun(GRAPH, world.program(agent))


def play_ended(turn: Turn) -> Played:
    """Play a turn whose agent may be ended at any time."""
    return agent_player(None)(turn._replace(may_end=lambda: True))


def test_agent_that_stays_open_is_ended_for_its_report(world: World) -> None:
    thread = begin(world, STAYS)

    world.step(thread, play_ended)

    step = world.snapshot(thread).get_head_node().payload
    assert (step["meta"], step["rung"]) == ({"text": "left"}, "file")
    world.assert_whole()
    assert not get_run_dir(world.store, thread, world.snapshot(thread).commit.parents[0]).read(
        "report"
    )


def test_without_a_report_that_fits_the_agent_is_left_alone(world: World) -> None:
    asked: list[bool] = []

    def may_end() -> bool:
        asked.append(True)
        if len(asked) > 2:
            (world.place / "go").touch()
        return True

    misfit = """echo '{"text": 1}' >.state/status.json"""
    waits = "until [ -e go ]; do sleep 0.01; done"
    thread = begin(world, f"""{misfit}; {waits}; echo '{{"meta": {{"text": "said"}}}}'""")

    world.step(thread, lambda turn: agent_player(None)(turn._replace(may_end=may_end)))

    assert world.snapshot(thread).get_head_node().payload["meta"] == {"text": "said"}


def test_ctrl_c_while_it_is_ended_keeps_the_report(world: World) -> None:
    def interrupt(_: bytes) -> None:
        raise KeyboardInterrupt

    thread = begin(world, STAYS)
    with pytest.raises(TurnInterrupted, match="interrupted"):
        world.step(
            thread, lambda turn: agent_player(interrupt)(turn._replace(may_end=lambda: True))
        )
    assert world.snapshot(thread).record.event == "start"

    # An ordinary step takes it up.
    world.step(thread, agent_player(None))

    assert world.snapshot(thread).get_head_node().payload["meta"] == {"text": "left"}
    assert (world.place / "runs").read_text() == "run\n"


def test_engine_that_dies_while_it_ends_the_agent_leaves_it_to_the_next(world: World) -> None:
    thread = begin(world, f"echo run >>runs; {LEAVES}; kill -TERM $$")

    def play(turn: Turn) -> Played:
        agent_player(None)(turn)
        turn.run_dir.write("report", '{"text": "kept"}')
        raise EngineDied

    with pytest.raises(EngineDied):
        world.step(thread, play)

    world.step(thread, agent_player(None))

    assert world.snapshot(thread).get_head_node().payload["meta"] == {"text": "kept"}
    assert (world.place / "runs").read_text() == "run\n"
