from commands.world import DEMO, World

from uwf_git.commands.verify.verify import verify
from uwf_git.model.thread import Waiting


def test_thread_waits_for_the_person_whose_turn_it_is(world: World) -> None:
    thread = world.begun()

    stepped = world.step(thread, command="human")

    assert (stepped.status, stepped.role, stepped.depth) == ("waiting", "writer", 0)
    snapshot = world.snapshot(thread)
    assert (snapshot.record.event, snapshot.record.agent) == ("wait", None)
    assert snapshot.get_present().waiting == Waiting("writer")
    assert snapshot.body == "Write."
    world.reopen()
    assert verify(world.store, []).troubles == ()


def test_question_without_a_prompt_is_the_role_s_description(world: World) -> None:
    thread = world.begun(DEMO.replace("    systemPrompt: Write.\n", ""))

    world.step(thread, command="human")

    assert world.snapshot(thread).body == "Writes."


def test_log_has_the_beginning_of_a_long_question(world: World) -> None:
    thread = world.begun(DEMO.replace("systemPrompt: Write.", f"systemPrompt: {'long ' * 1000}"))

    world.step(thread, command="human")

    assert 1_900 < len(world.snapshot(thread).body) < 2_100
