"""A turn that has begun has the output file that it began with, whatever was patched since."""

import pytest
from commands.world import World

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.control.steer import patch_thread
from uwf_git.commands.inspect.context import find_begun, get_context
from uwf_git.commands.turn.turn import Played, Turn

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
    workflow = world.put(GRAPH).workflow
    thread = world.start(world.program("echo '{\"meta\": {}}'"), workflow=workflow)

    def play(turn: Turn) -> Played:
        agent_player(None)(turn)
        raise EngineDied

    with pytest.raises(EngineDied):
        world.step(thread, play)
    patch_thread(world.store, world.caller, thread, {"file": "b.json"})

    def file_of(role: str) -> object:
        return get_context(world.store, thread, role=role)["role"]["outputFile"]

    assert (file_of("writer"), file_of("closer")) == ("a.json", "b.json")
    assert find_begun(world.store, world.snapshot(thread), "closer") is None
