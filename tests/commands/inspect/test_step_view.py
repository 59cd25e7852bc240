from commands.world import World, says

from uwf_git.commands.inspect.step_view import view_step
from uwf_git.commands.turn.turn import StepFiles


def test_step_shows_how_its_meta_was_found_and_where_the_rest_is(world: World) -> None:
    thread = world.begun()
    left = StepFiles(prompt="the prompt", trace={"events": []})
    reply = says({"text": "x"}, rung="native", session="s1")
    world.step(thread, lambda turn: reply(turn)._replace(left=left))
    snapshot = world.snapshot(thread)

    view = view_step(snapshot, snapshot.get_head_node())

    assert (view["rung"], view["session"]) == ("native", "s1")
    assert snapshot.get_node(view["prompt"]).payload == "the prompt"
    assert snapshot.get_node(view["trace"]).payload == {"events": []}
