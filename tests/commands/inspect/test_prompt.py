from commands.world import World, says
from refusing import refuses

from uwf_git.commands.inspect.context import get_context, render_prompt


def test_prompt_is_for_the_next_role(world: World) -> None:
    thread = world.begun()
    assert render_prompt(get_context(world.store, thread)).startswith("# You are writer\n")

    world.step(thread, says({"text": "x"}, "What was said."))

    prompt = render_prompt(get_context(world.store, thread))
    assert prompt.startswith("# You are checker\n")
    assert "What was said." in prompt


def test_role_can_be_named(world: World) -> None:
    thread = world.begun()

    assert render_prompt(get_context(world.store, thread, role="checker")).startswith(
        "# You are checker\n"
    )
    with refuses("not-its-turn"):
        render_prompt(get_context(world.store, thread, role="nobody"))
