"""What branches that ended come to, whoever drove them."""

from commands.world import World, replied
from refusing import refuses

from uwf_git.commands.control.steer import kill_thread
from uwf_git.commands.split.commits import Ending, draft_join, plan_ending
from uwf_git.commands.turn.branches import begin_branch
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.store.threads.snapshot import Snapshot

BOTH = """\
name: both
description: Two at once.
root:
  type: parallel
  name: both
  nodes:
    - {type: agent, agentId: one, output: first}
    - {type: agent, agentId: two, output: second}
"""


def play(turn: Turn) -> Played:
    return replied({}, f"said by {turn.role}\nand more")


def agree(_turn: Turn) -> Played:
    return replied({"key": "same"})


def differ(turn: Turn) -> Played:
    return replied({"key": turn.role})


class Ended:
    """A thread that split into two, and its branches at their ends; a player of None is a kill."""

    def __init__(self, world: World, *players: Player | None, source: str = BOTH) -> None:
        thread = world.begun(source)
        assert world.step(thread, play).status == "split"
        self.tip = world.snapshot(thread)
        split = self.tip.get_present().split
        assert split is not None
        self.tips: list[Snapshot] = []
        branches = [begin_branch(world.store, self.tip, n) for n in range(len(split.children))]
        for branch, player in zip(branches, players, strict=True):
            if player is None:
                kill_thread(world.store, world.caller, branch, reason="no time\nat all")
            else:
                statuses = [world.step(branch, player).status for _step in range(2)]
                assert statuses == ["ready", "completed"]
            self.tips.append(world.snapshot(branch))

    def plan(self) -> Ending:
        return plan_ending(self.tip, self.tips)


def test_an_ending_says_what_each_branch_said_last(world: World) -> None:
    ending = Ended(world, play, play).plan()

    assert ending.said == [("one", "said by one"), ("two", "said by two")]
    assert ending.meta == {"branches": [{"status": "completed", "steps": 1}] * 2}
    assert (ending.state["first"], ending.state["second"]) == (
        "said by one\nand more",
        "said by two\nand more",
    )
    assert "errors" not in ending.state


def test_a_killed_branch_leaves_its_reason_and_nothing_else(world: World) -> None:
    ended = Ended(world, play, None)

    ending = ended.plan()

    assert ending.said == [("one", "said by one"), ("two", "no step")]
    assert ending.state["errors"] == ["no time"]
    assert ending.state["first"] == "said by one\nand more"
    assert "parallel_1" not in ending.state
    joined = draft_join(ended.tip, ended.tips, ending)
    assert joined.new.said == "both: 1 completed, 1 killed"


def test_where_one_is_enough_the_others_are_no_errors(world: World) -> None:
    source = BOTH.replace("  name: both\n", "  name: both\n  join: any\n")

    state = Ended(world, play, None, source=source).plan().state

    assert "errors" not in state
    assert state["first"] == "said by one\nand more"


def test_a_killed_workflow_leaves_its_error_where_errors_are_a_list(world: World) -> None:
    world.put("name: inner\nroot: {type: agent, agentId: one}\n")
    source = "name: outer\ninitialState: {errors: %s}\nroot: {type: workflow, use: inner}\n"

    assert Ended(world, None, source=source % "[old]").plan().state == {
        "errors": ["old", "no time"]
    }
    ended = Ended(world, None, source=source % "text")
    with refuses("merge-conflict", match='errors: "text", which is no list') as caught:
        ended.plan()
    assert """{"errors": null}""" in (caught.value.hint or "")


def test_branches_that_disagree_cannot_be_joined(world: World) -> None:
    assert Ended(world, agree, agree).plan().state["key"] == "same"
    with refuses("merge-conflict", match="the branches of both disagree about key"):
        Ended(world, differ, differ).plan()
