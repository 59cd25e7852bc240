import json

from commands.world import World, replied

from uwf_git.commands.agent_run.run_checks import find_timeout_s
from uwf_git.commands.lifecycle.start import StartRequest, start_thread
from uwf_git.commands.turn.turn import Played, Turn


def test_time_is_that_of_the_agent_or_what_the_thread_has_left(world: World) -> None:
    seen: list[float | None] = []

    def play(turn: Turn) -> Played:
        seen.extend(find_timeout_s(turn, spent_ms=spent) for spent in (0, 4_000, 60_000))
        return replied({"text": "x", "ok": True})

    agent = json.dumps({"command": "nobody", "timeout": 8})
    request = StartRequest(
        world.put().workflow, "Do it.", (agent,), limits={"maxExecutionTime": 10_000}
    )
    thread = start_thread(world.store, world.caller, request, thread=world.new_id()).thread
    world.step(thread, play)
    assert seen == [8, 6, 0]
