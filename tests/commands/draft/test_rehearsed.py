"""A rehearsal takes the way that the engine takes when agents give the same answers."""

from pathlib import Path

import pytest
from commands.flow_runs import drive
from commands.world import World, replied
from workflow_file import read_flow_file

from uwf_git.commands.lifecycle.start import StartRequest, start_thread
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.workflow.build import put_workflow
from uwf_git.engine.rehearsal import find_least, rehearse
from uwf_git.model.definition.definition import Surroundings

ROOT = Path(__file__).parents[3]
SHIPPED = ("develop", "draft", "fan-out", "orchestrate", "review-loop", "vote")
OF_THE_SEED = ("for-each-feature", "level-2", "level-4")
FILES = [
    *(ROOT / "workflows" / f"{name}.yaml" for name in SHIPPED),
    *(ROOT / "tests" / "flows" / f"{name}.yaml" for name in OF_THE_SEED),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rehearsal_and_engine_take_the_same_way(path: Path, world: World) -> None:
    definition = read_flow_file(path.read_text(), Surroundings(path.stem))
    rehearsed = rehearse(definition, "Do it.")
    put = put_workflow(world.store, world.caller, path.read_bytes(), path=str(path))
    agents = tuple(f"{role}=nobody" for role in definition.roles)
    request = StartRequest(put.workflow, "Do it.", agents)
    thread = start_thread(world.store, world.caller, request, thread=world.new_id()).thread
    acted: list[str] = []

    def play(turn: Turn) -> Played:
        acted.append(turn.role)
        schema = definition.roles[turn.role].output_schema
        return replied({} if schema is True else find_least(schema), "")

    drive(world, thread, play)

    assert acted
    # A flow that goes wrong goes wrong at the same place.
    assert rehearsed.roles == tuple(acted), rehearsed.problem
