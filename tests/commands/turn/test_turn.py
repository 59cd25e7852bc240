import pytest
from commands.world import World, content_player, fails

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.turn import Played, Turn


def test_player_gets_everything_it_needs(world: World) -> None:
    thread = world.begun()
    turns: list[Turn] = []

    def play(turn: Turn) -> Played:
        turns.append(turn)
        return fails()(turn) if len(turns) == 1 else content_player(turn)

    with pytest.raises(TurnFailed):
        world.step(thread, play)
    world.retry(thread)
    world.step(thread, play)

    first, second = turns
    assert (first.thread, first.role, first.workdir) == (thread, "writer", str(world.place))
    assert first.agent.payload == {"command": "nobody"}
    assert (first.attempt, second.attempt) == (1, 2)


def test_role_of_a_flow_that_asks_for_a_meta_may_not_print_just_anything(world: World) -> None:
    role = "roles: {a: {outputSchema: {type: object, required: [text]}}}\n"
    asking = world.put(f"name: flow\n{role}root: {{type: agent, agentId: a}}\n").workflow
    thread = world.start(world.program("echo words"), workflow=asking)

    with pytest.raises(TurnFailed, match="neither a JSON object nor text with front matter"):
        world.step(thread, agent_player(None))
