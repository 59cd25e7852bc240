"""What the picture of a thread says of it, in each of its states."""

import json
from pathlib import Path

import pytest
from commands.flows import Split, begin_outer
from commands.inspect.test_show import split_of
from commands.step.test_record_turn import CHECKS
from commands.turns import branches, drive, script
from commands.world import World, says
from store.signing_keys import needs_ssh, public_half, with_settings
from store.small_packs import lose
from web.stories import TASK, tell_work

from uwf_git.commands.inspect.graph import ThreadReport, picture_thread, view_report
from uwf_git.commands.inspect.show import show_thread, view_thread
from uwf_git.commands.inspect.story import find_problems
from uwf_git.engine.picture.draw import make_plan
from uwf_git.engine.picture.plan import FlowPlan
from uwf_git.model.builtin import find_reference
from uwf_git.store.nodes import find_blob

FLOW = """\
name: work
roles: {}
root:
  type: sequential
  nodes:
    - type: loop
      condition: state.ok !== true
      maxIterations: 3
      nodes:
        - {type: agent, agentId: writer}
    - type: parallel
      nodes:
        - {type: agent, agentId: left}
        - {type: agent, agentId: right}
"""


def badges(world: World, thread: str) -> dict[str, str]:
    """Return the badges by place."""
    subject = picture_thread(world.store, thread)
    assert subject.thread is not None
    return {place: mark.badge for place, mark in subject.thread.marks.items()}


def test_a_flow_says_in_which_pass_its_thread_is(world: World) -> None:
    thread = world.begun(FLOW)
    assert badges(world, thread) == {"0/0": "▶ pass 1", "0/0/0": "▶ next"}
    world.step(thread, says({"ok": False}))
    assert badges(world, thread) == {"0/0": "▶ pass 2", "0/0/0": "▶ next · ✓ 1"}
    world.step(thread, says({"ok": True}))
    assert badges(world, thread) == {"0/0/0": "✓ 2", "0/1": "▶ next"}


def test_branches_stand_in_the_picture_of_their_thread(world: World) -> None:
    thread = world.stepped(says({"ok": True}), says({}), source=FLOW)
    before = badges(world, thread)
    world.step(thread, says({"said": 1}))
    left, _ = branches(world, thread)

    assert before == {"0/0/0": "✓ 1", "0/1": "▶ 0 of 2 ended"}
    shown = badges(world, thread)
    assert {place: shown[place] for place in ("0/0/0", "0/1")} == before
    assert (shown["0/1/0"], shown["0/1/1"]) == ("✓ 1", "✓ 1")
    assert set(badges(world, left)) == {"0/1/0"}


def test_a_branch_has_no_steps_of_the_thread_before_it_split(world: World) -> None:
    thread = split_of(world)
    world.step(thread, script())
    branch, _ = branches(world, thread)

    for each in (branch, world.fork(branch)):
        subject = picture_thread(world.store, each)
        assert subject.thread is not None
        assert subject.thread.headline.endswith(", 1 step")
    assert badges(world, branch) == {"0/1/0": "✓ 1"}


def test_a_branch_that_was_given_up_is_marked_with_its_error(world: World) -> None:
    thread = world.begun(FLOW.replace("type: parallel", "type: parallel\n      onError: continue"))
    world.step(thread, says({"ok": True}))
    world.step(thread, says({}))
    left, right = branches(world, thread)
    world.kill(left, reason="no paper")
    world.step(right, says({"said": 1}))
    world.step(thread, says({}))
    assert world.snapshot(thread).record.event == "join"
    subject = picture_thread(world.store, thread)
    assert subject.thread is not None
    mark = subject.thread.marks["0/1/0"]
    assert (mark.badge, mark.words) == ("✗ given up", "was given up: no paper")
    assert subject.thread.marks["0/1/1"].badge == "✓ 1"


def test_many_branches_of_a_player_are_one_box_with_counts_by_status(world: World) -> None:
    nodes = "\n".join(f"    - {{type: agent, agentId: left, id: left-{n}}}" for n in range(13))
    thread = world.begun(f"name: many\nroles: {{}}\nroot:\n  type: parallel\n  nodes:\n{nodes}\n")
    world.step(thread, says({}))
    children = branches(world, thread)
    world.fail(children[3])
    world.step(children[5], says({}))

    subject = picture_thread(world.store, thread)
    folded, whole = (make_plan(subject, is_whole=is_whole) for is_whole in (False, True))
    assert isinstance(folded, FlowPlan)
    assert isinstance(whole, FlowPlan)
    assert folded.title.endswith(f"thread {thread}, failed, 1 step")
    [branch] = folded.blocks[0].branches
    box = branch.blocks[0]
    assert (box.name, box.note) == ("13 \N{MULTIPLICATION SIGN} left", "left-0 … left-12")
    assert box.mark is not None
    assert box.mark.badge == "✗ 1 · ✓ 1"
    assert [each.blocks[0].name for each in whole.blocks[0].branches][-1] == "left-12"


# The document of a report: every event, what it took, what is missing.


def view(world: World, thread: str) -> ThreadReport:
    return view_report(world.store, thread, {})


def test_every_event_is_told_in_its_order(world: World) -> None:
    document = view(world, tell_work(world)).document

    assert [each["event"] for each in document["entries"]] == [
        *("start", "step", "attempt", "retry", "step", "pause", "patch", "resume", "step", "poke"),
        *("step", "step", "step", "end"),
    ]
    assert document["problems"] == []
    assert (document["title"], document["prompt"]["text"]) == (TASK.splitlines()[0], TASK)
    assert [each["depth"] for each in document["entries"] if each.get("takenBack")] == [3]
    steps = [each for each in document["entries"] if each["event"] == "step"]
    assert [each["failedAttempts"] for each in steps] == [0, 1, 0, 0, 0, 0]
    assert [each.get("compared", {}).get("depth") for each in steps] == [None, None, None, 3, 2, 3]
    assert json.loads(json.dumps(document)) == document


def test_joined_branches_count_once(world: World) -> None:
    thread = world.begun(CHECKS)
    drive(world, thread, script(coder="x", reviewer="fine", builder="b", tester="t", closer="c"))

    report = view(world, thread)

    assert report.document["totals"]["steps"] == 5
    shown = show_thread(world.store, thread)
    assert report.document["totals"]["durationMs"] == shown["executionTime"]
    split = next(each for each in report.document["entries"] if each["event"] == "split")
    told = [(each["label"], each["status"], len(each["entries"])) for each in split["branches"]]
    assert told == [("reviewer", "completed", 3), ("testing", "completed", 4)]
    assert report.picture is not None
    join = next(each for each in report.document["entries"] if each["event"] == "join")
    assert join["meta"] is None


def test_workflow_of_a_role_is_a_step_wherever_steps_are_counted(world: World) -> None:
    thread = begin_outer(world)

    driven, _ = drive(world, thread, script())

    assert driven.steps == view(world, thread).document["totals"]["steps"] == 2
    assert view_thread(world.store, thread).spent.depth == 2


def test_fork_of_a_split_thread_has_none_of_its_branches(world: World, split: Split) -> None:
    fork = world.fork(split.thread)
    split.finish_branches()

    for thread, steps in ((split.thread, 3), (fork, 1)):
        assert view(world, thread).document["totals"]["steps"] == steps
        assert view_thread(world.store, thread).spent.depth == steps


def test_branches_at_work_are_told_as_far_as_they_are(world: World) -> None:
    entries = view(world, split_of(world)).document["entries"]
    assert [each["status"] for each in entries[-1]["branches"]] == ["ready", "ready"]


def test_a_lost_text_is_told_in_its_place(world: World) -> None:
    thread = world.stepped(says({"text": "kept"}, "gone"))
    snapshot = world.snapshot(thread)
    name = find_reference(snapshot.get_head_node().payload["content"])
    assert name is not None
    blob = find_blob(snapshot.objects, snapshot.nodes, name)
    assert blob is not None
    lose(world.store, blob)

    document = view(world, thread).document

    assert document["entries"][1]["meta"] == {"value": {"text": "kept"}}
    assert len(document["problems"]) == 1
    assert [*find_problems(document["entries"])] == document["problems"]


@pytest.mark.parametrize("number", [0, 5, 12, 13])
def test_a_lost_commit_leaves_what_came_after_it(world: World, number: int) -> None:
    thread = tell_work(world)
    commit = view(world, thread).document["entries"][number]["commit"]
    lose(world.store, commit)

    document = view(world, thread).document

    events = [each["event"] for each in document["entries"]]
    assert events[0] is None
    assert len(events) == 14 - number
    assert any(commit in each for each in document["problems"])


@needs_ssh
def test_signatures_are_told_or_why_they_are_not(world: World, key: Path) -> None:
    signers = world.place / "signers"
    signers.write_text(f"ada@example.com {public_half(key)}\n")
    settings = {
        "gpg__format": "ssh",
        "user__signingKey": str(key),
        "commit__gpgSign": "true",
        "gpg__ssh__allowedSignersFile": str(signers),
    }
    world.store = with_settings(world.store, **settings)
    thread = world.begun()

    entry = view(world, thread).document["entries"][0]
    assert (entry["signature"]["status"], entry["signature"]["signer"]) == (
        "good",
        "ada@example.com",
    )

    signers.unlink()
    document = view(world, thread).document
    assert document["entries"][0]["signature"] == {"status": "unchecked"}
    assert str(signers) in document["signatureProblem"]
