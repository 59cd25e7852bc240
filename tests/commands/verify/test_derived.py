"""Derived commits that were forged: verify makes each again, and compares."""

from typing import Any

import pytest
from commands.flows import (
    CHECKS,
    CountingObjects,
    Split,
    copy_commit,
    move,
    plays,
    put,
    split_files,
    tell,
)
from commands.forging import Change, also, holds, place, points, says
from commands.world import World, fails, replied
from dulwich.objects import Commit, ObjectID

from uwf_git.commands.split import (
    Asked,
    Derived,
    draft_join,
    draft_split,
    find_container,
    plan_ending,
    plan_split,
)
from uwf_git.commands.start import StartRequest, start_thread
from uwf_git.commands.verify.verify import verify
from uwf_git.model.builtin import START, TEXT, reference
from uwf_git.model.names import Oid, ThreadId
from uwf_git.model.node import build_node
from uwf_git.store.nodes import encode_node
from uwf_git.store.objects.commit import encode_json
from uwf_git.store.threads.history import Snapshot, parse_now, read_snapshot


def forge(split: Split, thread: ThreadId, *changes: Change) -> list[str]:
    """Change the newest commit of a thread, and return what verify says of it."""
    commit = copy_commit(split.world.store, split.world.tip(thread))
    also(*changes)(commit)
    return tell(split.world.store, thread, put(split.world.store, commit))


def test_a_joined_branch_that_has_another_end_here_is_told(split: Split) -> None:
    store, branch = split.world.store, split.children[0]
    split.finish_branches()
    split.world.step(split.thread, plays)
    end = split.world.tip(branch)
    later = copy_commit(store, end)
    later.commit_time = later.author_time = later.commit_time + 60
    other = put(store, later)
    store.refs.change({f"refs/archive/{branch}": (end, other)})

    (found,) = verify(store, []).troubles

    assert f"{end} cannot be: the branch is at {other} here" in found.message


def says_now(split: Split, thread: ThreadId, /, **parts: Any) -> Change:
    present = split.world.snapshot(thread).get_present()._replace(**parts)
    return holds(split.world.store, "now.json", encode_json(present.as_document()))


def has_parents(*parents: Oid) -> Change:
    def change(commit: Commit) -> None:
        commit.parents = [ObjectID(each.encode()) for each in parents]

    return change


def assert_told(told: list[str], words: str) -> None:
    assert any(words in each for each in told), told


def test_a_split_or_start_with_another_file_is_told(split: Split) -> None:
    world, child = split.world, split.children[0]
    text = build_node(TEXT, "more", timestamp=1)
    for thread in (split.thread, child):
        more = holds(world.store, place(text.hash, ".md"), encode_node(text)[1])
        event = world.snapshot(thread).record.event
        assert_told(forge(split, thread, more), f"the {event} is not the one that follows")
        gone = points(world.store, place(split.tip.get_start().hash), None)
        assert_told(forge(split, thread, gone), f"the {event} ")


def test_a_split_whose_thread_is_not_here_was_not_made_by_hand(split: Split) -> None:
    store, nowhere = split.world.store, Oid("1" * 40)
    commit = copy_commit(store, split.tip.commit.oid)
    has_parents(nowhere)(commit)
    move(split.world, split.thread, put(store, commit))

    found = next(each for each in verify(store, []).troubles if "the split" in each.message)

    assert found.message == f"the split cannot be checked: commit {nowhere} is missing"
    assert "by hand" not in found.hint


def test_a_split_where_no_condition_leads_is_told(world: World) -> None:
    thread = world.begun(CHECKS)
    tip = world.snapshot(thread)
    derived = draft_split(tip, plan_split(tip, find_container(tip, "0/1"), Asked()))

    told = tell(world.store, thread, derived.write(world.store))

    assert told == ["Uwf-At is 0/1, where no condition leads from the beginning"]


def test_a_split_of_a_graph_where_no_transition_leads_is_told(world: World) -> None:
    world.put("name: inner\nroot: {type: agent, agentId: digger}\n")
    thread = world.begun(
        "name: outer\nroles:\n  coder: {description: Codes.}\n"
        "  builder: {description: Builds., workflow: inner}\n"
        "moderator:\n  graph:\n"
        "    - {from: $START, transitions: [{to: coder}]}\n"
        "    - {from: coder, transitions: [{to: builder}]}\n"
        "    - {from: builder, transitions: [{to: $END}]}\n"
    )
    tip = world.snapshot(thread)
    asked = Asked(prompt=tip.get_start().payload["prompt"])
    derived = draft_split(tip, plan_split(tip, find_container(tip, "builder"), asked))

    told = tell(world.store, thread, derived.write(world.store))

    assert told == ["Uwf-At is builder, where no transition leads from $START"]


@pytest.mark.parametrize("at", ["0/0", "0/7", "0/1.2", "1", "", "x"])
def test_a_split_at_a_place_that_splits_nothing_is_told(split: Split, at: str) -> None:
    assert forge(split, split.thread, says("Uwf-At: 0/1", f"Uwf-At: {at}" if at else "Uwf-X: 1"))


def test_a_split_of_an_ended_thread_is_told(world: World) -> None:
    thread = world.stepped(plays, source=CHECKS)
    world.kill(thread, reason="enough")
    ended = world.snapshot(thread)
    derived = draft_split(ended, plan_split(ended, find_container(ended, "0/1"), Asked()))

    told = tell(world.store, thread, derived.write(world.store))

    assert told == ["Uwf-Event is split, after the thread was killed"]


def test_a_start_node_of_other_words_is_told(split: Split) -> None:
    """The split that lists it is not the one that follows."""
    world, tip = split.world, split.tip
    found = tip.get_present().split
    assert found is not None
    old = tip.get_node(found.children[0].start)
    for edit in ({"prompt": "Approve it."}, {"depth": 2}, {"initialState": {"ok": True}}):
        new = build_node(old.type, {**old.payload, **edit}, timestamp=old.timestamp)
        child = found.children[0]._replace(start=new.hash)
        lie = found._replace(children=(child, *found.children[1:]))
        told = forge(
            split,
            split.thread,
            says_now(split, split.thread, split=lie),
            points(world.store, place(old.hash), None),
            holds(world.store, place(new.hash), encode_node(new)[1]),
        )
        assert_told(told, "the split is not the one that follows")


def test_a_start_of_another_branch_or_with_another_state_is_told(split: Split) -> None:
    world, (first, second) = split.world, split.children
    assert tell(world.store, first, world.tip(first)) == []
    for changes in (
        [says_now(split, first, state={"approved": True})],
        [says_now(split, first, limits={"maxSteps": 1})],
        [says("branch 0", "branch 1")],
        [has_parents(split.tip.commit.oid, world.tip(second))],
        [has_parents(split.tip.commit.parents[0])],
        [has_parents(world.tip(second))],
    ):
        assert_told(forge(split, first, *changes), "start")
    # A thread that the split does not list.
    stranger = world.new_id()
    commit = copy_commit(world.store, world.tip(first))
    says(f"Uwf-Thread: {first}", f"Uwf-Thread: {stranger}")(commit)
    told = tell(world.store, stranger, put(world.store, commit))
    assert_told(told, f"{stranger} is no branch of {split.thread}")


def test_a_branch_that_begins_after_a_patch_is_told(split: Split) -> None:
    """Its parent is the split itself, whatever the thread has gone through since."""
    world = split.world
    commit = copy_commit(world.store, split.tip.commit.oid)
    says("Uwf-Event: split", "Uwf-Event: patch")(commit)
    says("split: checks into 2", "patch: x")(commit)

    told = forge(split, split.children[0], has_parents(put(world.store, commit)))

    assert_told(told, "there can be no such start: a thread begins after a commit that is no split")


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"entry": "0/1/0"}, "start.json has entry, and the thread began as no branch"),
        ({"parent": reference(START)}, "start.json has parent, and the thread began as no branch"),
        ({"maxSteps": 0}, "the limit maxSteps must be a whole number, 1 or more"),
    ],
)
def test_a_thread_that_begins_as_none_can_is_told(
    world: World, part: dict[str, Any], told: str
) -> None:
    """At the place of a branch it would come to its end without the agents before and after."""
    thread = world.begun(CHECKS)
    old = world.snapshot(thread).get_start()
    new = build_node(old.type, {**old.payload, **part}, timestamp=old.timestamp)
    content = encode_node(new)[1]

    assert forge(
        Split(world, thread),
        thread,
        says(f"Uwf-Node: {old.hash}", f"Uwf-Node: {new.hash}"),
        says(f"Uwf-Cause: {old.hash}", f"Uwf-Cause: {new.hash}"),
        points(world.store, place(old.hash), None),
        *(
            holds(world.store, path, content)
            for path in (place(new.hash), "start.json", "head.json")
        ),
    ) == [told]


# Joins.


@pytest.fixture
def ended(split: Split) -> Split:
    """Return a thread whose branches have ended, and are not joined."""
    split.finish_branches()
    return split


def draft(split: Split, tips: list[Snapshot]) -> Derived:
    return draft_join(split.tip, tips, plan_ending(split.tip, tips))


def tips_of(split: Split) -> list[Snapshot]:
    return [split.world.snapshot(child) for child in split.children]


def tell_join(split: Split, tips: list[Snapshot]) -> list[str]:
    world = split.world
    return tell(world.store, split.thread, draft(split, tips).write(world.store))


@pytest.mark.parametrize("change", ["state", "head", "parents", "swapped", "fewer", "more"])
def test_a_join_of_another_content_is_told(ended: Split, change: str) -> None:
    world = ended.world
    derived = draft(ended, tips_of(ended)).write(world.store)
    joined = read_snapshot(world.store, derived)
    split, first, second = joined.commit.parents
    lie = encode_json(joined.get_present()._replace(state={"approved": True}).as_document())
    changes: dict[str, Change] = {
        "state": holds(world.store, "now.json", lie),
        "head": says(f"Uwf-Node: {joined.record.node}", "Uwf-Node: 0123456789ABC"),
        "parents": has_parents(split, first, first),
        "swapped": has_parents(split, second, first),
        "fewer": has_parents(split, first),
        "more": has_parents(split, first, second, second),
    }
    commit = copy_commit(world.store, derived)
    changes[change](commit)

    assert_told(tell(world.store, ended.thread, put(world.store, commit)), " join")


def test_a_whole_sum_in_a_join_as_older_versions_wrote_it_is_no_lie(split: Split) -> None:
    for child in split.children:
        split.world.finish(child, lambda _turn: replied({}, usage={"costUsd": 0.5}))
    joined = read_snapshot(split.world.store, draft(split, tips_of(split)).write(split.world.store))
    now = encode_json(joined.get_present().as_document())
    for sum_, problems in (b'"costUsd": 1', 0), (b'"depth": 2', 1):
        commit = copy_commit(split.world.store, joined.commit.oid)
        assert now.count(sum_) == 1
        holds(split.world.store, "now.json", now.replace(sum_, sum_ + b".0"))(commit)

        told = tell(split.world.store, split.thread, put(split.world.store, commit))
        assert len(told) == problems, told


def test_a_join_of_branches_that_have_not_ended_is_told(split: Split) -> None:
    told = tell_join(split, tips_of(split))

    assert_told(told, f"a join of branch {split.children[0]}, which is ready")


def test_a_join_of_a_thread_that_has_not_split_is_told(ended: Split) -> None:
    world = ended.world
    derived = draft(ended, tips_of(ended)).write(world.store)
    move(world, ended.thread, derived)
    again = copy_commit(world.store, derived)
    again.parents = [ObjectID(derived.encode()), *again.parents[1:]]

    told = tell(world.store, ended.thread, put(world.store, again))

    assert_told(told, "there can be no such join: a join after a commit that has no branches")


def test_a_join_whose_result_does_not_fit_the_role_of_a_graph_is_told(world: World) -> None:
    world.put("name: inner\nroot: {type: agent, agentId: digger}\n")
    thread = world.begun(
        "name: outer\nroles:\n  builder:\n    description: Builds.\n    workflow: inner\n"
        "    outputSchema: {type: object, required: [good]}\n"
        "moderator:\n  graph:\n"
        "    - {from: $START, transitions: [{to: builder}]}\n"
        "    - {from: builder, transitions: [{to: $END}]}\n"
    )
    world.step(thread, plays)
    world.step(thread, plays)
    outer = Split(world, thread)
    world.kill(outer.children[0])

    (told,) = tell_join(outer, tips_of(outer))

    assert "'good' is a required property" in told


def stranger(world: World, thread: ThreadId) -> Snapshot:
    """Return the end of a thread under the id of a branch that began by itself."""
    world.store.refs.delete(f"refs/archive/{thread}", seen=world.tip(thread))
    start_thread(world.store, world.caller, StartRequest("checks", "x", ("a",)), thread=thread)
    world.kill(thread, reason="mine")
    return world.snapshot(thread)


def test_a_join_of_a_thread_that_is_paused_is_told(ended: Split) -> None:
    ended.world.pause(ended.thread)

    assert tell_join(ended, tips_of(ended))[0] == "Uwf-Event is join, after the thread was paused"


def test_a_join_of_a_stranger_under_the_id_of_a_branch_is_told(ended: Split) -> None:
    child = ended.children[0]
    fake = stranger(ended.world, child)
    assert tell(ended.world.store, child, fake.commit.oid, archived=True) == []

    told = tell_join(ended, [fake, tips_of(ended)[1]])

    assert_told(told, f"{child} did not begin as branch of {ended.thread}")


def test_a_join_of_a_branch_torn_from_its_split_is_told(ended: Split) -> None:
    """It has the StartNode and the names, as if an agent had begun it, and another history."""
    world, child = ended.world, ended.children[0]
    tip = world.snapshot(child)
    made: list[Oid] = []
    snapshot, chain = tip, [tip]
    while snapshot.record.event != "start":
        snapshot = read_snapshot(world.store, snapshot.commit.parents[0])
        chain.append(snapshot)
    for each in reversed(chain):
        commit = copy_commit(world.store, each.commit.oid)
        commit.parents = [ObjectID(oid.encode()) for oid in made[-1:]]
        made.append(put(world.store, commit))

    told = tell_join(ended, [read_snapshot(world.store, made[-1]), tips_of(ended)[1]])

    assert_told(told, "it did not begin at ")


def test_what_a_branch_forged_is_told_of_the_thread_that_joined_it(ended: Split) -> None:
    world, child = ended.world, ended.children[1]
    tip = world.snapshot(child)
    step = copy_commit(world.store, tip.commit.parents[0])
    lie = read_snapshot(world.store, tip.commit.parents[0]).get_present()
    now = encode_json(lie._replace(state={**lie.state, "approved": True}).as_document())
    holds(world.store, "now.json", now)(step)
    end = copy_commit(world.store, tip.commit.oid)
    holds(world.store, "now.json", now)(end)
    end.parents = [ObjectID(put(world.store, step).encode())]

    told = tell_join(ended, [tips_of(ended)[0], read_snapshot(world.store, put(world.store, end))])

    assert told == ["now.json says state.approved true, and the history gives nothing"]


GIVEN_UP = """\
name: given-up
description: A place that may fail.
initialState: {n: 1}
root:
  type: sequential
  nodes:
    - {type: loop, maxIterations: 2, onError: continue, nodes: [{type: agent, agentId: one}]}
    - {type: agent, agentId: two}
"""


def test_what_a_place_that_was_given_up_left_is_folded_again(world: World) -> None:
    thread = world.begun(GIVEN_UP)
    world.fail(thread, fails("no luck"))
    world.assert_sound(thread)
    tip = world.snapshot(thread)
    present = tip.get_present()
    assert (tip.record.status, present.at, present.state) == (
        "ready",
        "0/0",
        {"n": 1, "error": "no luck"},
    )

    # Whether tries were left nobody can tell from outside; what follows from either is.
    for parts in (
        {"state": {"n": 1}},
        {"state": {"n": 1, "error": "luck"}},
        {"state": {"n": 2, "error": "no luck"}},
        {"at": "0/0.1/0"},
        {"at": "0/1"},
        {"failures": 1},
        {"trying": "0/0.1/0"},
    ):
        given_up = Split(world, thread)
        assert_told(forge(given_up, thread, says_now(given_up, thread, **parts)), "now.json says ")


def test_no_tries_beside_the_last_one_as_older_versions_wrote_them_are_no_lie(world: World) -> None:
    thread = world.begun(GIVEN_UP)
    world.fail(thread)
    given_up, present = Split(world, thread), world.snapshot(thread).get_present()
    now, last = encode_json(present.as_document()), b'  "lastAttempt"'
    for number, told in (0, []), (1, ["now.json says attempts 1, and the history gives nothing"]):
        old = now.replace(last, b'  "attempts": %d,\n%s' % (number, last))
        assert parse_now(old).present == present._replace(attempts=number)

        assert forge(given_up, thread, holds(world.store, "now.json", old)) == told


def test_a_step_at_a_made_up_place_is_told(split: Split) -> None:
    child = split.children[0]
    split.world.step(child, plays)
    for at, words in (
        ("0/1/1", "which is the place of tester"),
        ("0/2", "which is the place of closer"),
        ("0/1/0/0", "which is no place of an agent"),
        ("nowhere", "which is no position"),
        ("0/0", "which is the place of coder"),
    ):
        told = forge(split, child, says("Uwf-At: 0/1/0", f"Uwf-At: {at}"))
        assert_told(told, f"Uwf-At is {at}, {words}")


def test_a_place_in_a_graph_is_told(world: World) -> None:
    thread = world.stepped()

    told = forge(Split(world, thread), thread, says("Uwf-Format", "Uwf-At: 0/1\nUwf-Format"))

    assert told == ["step has an Uwf-At, and the workflow is a graph"]


# Cost.


def test_many_branches_cost_no_more_each_than_few(world: World) -> None:
    """The plan of a split is as long as it has branches: it is made once for all of them."""
    few, many = (_count_reads(world, split_files(world, count)) for count in (6, 18))

    assert many < few * 3 * 1.2


def _count_reads(world: World, split: Split) -> int:
    split.finish_branches()
    assert split.step() == "ready"
    counting = CountingObjects(world.store.objects)
    assert tell(world.store._replace(objects=counting), split.thread, split.tip.commit.oid) == []
    return counting.count
