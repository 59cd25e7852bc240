from commands.world import World, says

from uwf_git.commands.inspect.context import get_context, render_prompt


def test_prompt_is_for_the_next_role(world: World) -> None:
    thread = world.begun()
    assert render_prompt(get_context(world.store, thread)).startswith("# You are writer\n")

    world.step(thread, says({"text": "x"}, "What was said."))

    prompt = render_prompt(get_context(world.store, thread))
    assert prompt.startswith("# You are checker\n")
    assert "What was said." in prompt
