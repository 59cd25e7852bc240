from commands.world import World

from uwf_git.commands.stepped import Stepped, tell_stepped


def test_what_is_told_is_what_the_commit_says(world: World) -> None:
    thread = world.begun()
    stepped = world.step(thread)
    record = world.snapshot(thread).record

    assert stepped == tell_stepped(record, said=stepped.said)
    assert stepped == Stepped(
        record.workflow, thread, record.node, "ready", "writer", 1, stepped.said
    )
