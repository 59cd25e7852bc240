from commands.world import World

from uwf_git.commands.turn.turn import ThreadResult, build_thread_result


def test_report_of_a_step_agrees_with_its_commit(world: World) -> None:
    thread = world.begun()
    stepped = world.step(thread)
    snapshot = world.snapshot(thread)
    record, commit = snapshot.record, snapshot.commit.oid

    assert stepped == build_thread_result(record, said=stepped.said, commit=commit)
    assert stepped == ThreadResult(
        record.workflow, thread, record.node, "ready", "writer", 1, stepped.said, commit
    )
