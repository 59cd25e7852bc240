from commands.killed import kill_everywhere
from commands.world import DEMO, World

from uwf_git.commands.control.answer import PersonAnswer
from uwf_git.store.threads.history import walk_history


def test_answer_killed_anywhere_was_given_once_or_not_at_all(world: World) -> None:
    thread = world.begun(DEMO, "human")

    def answer(copy: World) -> int:
        return copy.answer(thread, PersonAnswer({"text": "By hand."}, "A text.")).depth

    def again(copy: World) -> None:
        record = copy.snapshot(thread).record
        assert (record.event, record.depth) in {("start", 0), ("wait", 0), ("answer", 1)}
        if record.depth == 0:
            assert answer(copy) == 1
        told = [each.record.event for each in walk_history(copy.store, copy.tip(thread))]
        assert told == ["answer", "wait", "start"]

    assert kill_everywhere(world, answer, again) > 40
