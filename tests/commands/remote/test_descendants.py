"""Branches that are shared: pushed with their thread, stepped elsewhere, joined by anybody."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands.flows import (
    CHECKS,
    FILES,
    LINE,
    CountingObjects,
    Split,
    copy_commit,
    finish,
    lists,
    plays,
    push_costs,
    put,
    tell,
)
from commands.forging import says
from commands.sharing import Site, another, failure_of, refs_of
from commands.world import World, replied
from refusing import is_refused

from uwf_git.commands.receive import check_received
from uwf_git.commands.remote import push
from uwf_git.commands.remote.push import push_remote
from uwf_git.commands.remote.push_plan import PushPlan, plan_push, with_branches
from uwf_git.commands.start import ForkRequest, fork_thread
from uwf_git.commands.step.step_thread import list_leaves
from uwf_git.commands.verify.history import heads_of_refs, list_beginnings
from uwf_git.commands.verify.verify import verify
from uwf_git.errors import Conflict, Refused
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.git.hook_files import RefUpdate, Refusal
from uwf_git.store.objects.commit import list_new_objects
from uwf_git.store.remotes.remotes import add_remote
from uwf_git.store.store import Store, open_store

Git = Callable[..., str]


@pytest.fixture
def site(world: World, hub: Path) -> Site:
    """Return a site whose pushes are judged by the rules of a shared store, without its hooks."""
    world.caller = world.caller._replace(environ={**os.environ, "PATH": ""})
    add_remote(world.store, "origin", str(hub), cwd=str(world.place))
    return Site(world)


def step(site: Site, thread: ThreadId) -> str:
    """Take a step, as the next process would, and return the status."""
    site.world.reopen()
    return site.world.step(thread, plays, command="mine", workdir=str(site.world.place)).status


def begun(site: Site, source: str = CHECKS) -> ThreadId:
    """Return a thread that is about to split."""
    thread = site.world.begun(source)
    if source == FILES:
        site.world.step(thread, lambda _turn: replied(lists(6)), workdir=str(site.world.place))
    else:
        step(site, thread)
    return thread


def split(site: Site, source: str = CHECKS) -> Split:
    """Return a thread that has split."""
    thread = begun(site, source)
    assert step(site, thread) == "split"
    return Split(site.world, thread)


def split_and_begin(site: Site, source: str = CHECKS) -> Split:
    """Return a thread that has split, with branches that have begun."""
    at = split(site, source)
    list(list_leaves(site.world.store, at.tip))
    return at


def end_elsewhere(site: Site, hub: Path, branch: ThreadId) -> Site:
    """Push, and return another clone, which has ended a branch and pushed it."""
    site.push()
    b = another(site.world, str(hub), name="b")
    finish_with(b, branch)
    assert b.push().failure() is None
    return b


def join_otherwise(at: Split) -> None:
    """End the first branch by a kill, finish the other, and join both."""
    first, second = at.children
    at.world.kill(first, reason="mine wins")
    finish(at.world, second)
    at.world.step(at.thread, plays)


def refs(site: Site) -> dict[str, Oid]:
    return site.refs("threads", "archive")


def run_to_end(site: Site, thread: ThreadId) -> None:
    for _ in range(20):
        if step(site, thread) == "completed":
            return
    raise AssertionError("it does not end")


@pytest.fixture
def at(site: Site) -> Split:
    """Return a thread that has split, with branches that have begun."""
    return split_and_begin(site)


def test_a_push_of_a_thread_takes_its_branches_along(site: Site, hub: Path) -> None:
    thread = split(site, FILES).thread
    other = site.world.start(workflow="files")
    step(site, thread)

    pushed = site.push(thread)

    assert pushed.failure() is None
    assert len(pushed.pushed) == 7
    assert set(refs_of(hub)) == set(refs(site)) - {f"threads/{other}"}


def test_branches_of_branches_go_along(site: Site, hub: Path) -> None:
    thread = begun_nested(site, FILES.replace("{type: agent, agentId: reader}", INNER))
    for _ in range(2):
        step(site, thread)

    assert len(with_branches(site.world.store, [thread])) == 1 + 2 + 4
    assert site.push(thread).failure() is None
    assert refs_of(hub) == refs(site)


INNER = "{type: parallel, nodes: [{type: agent, agentId: one}, {type: agent, agentId: two}]}"


def begun_nested(site: Site, source: str) -> ThreadId:
    thread = site.world.begun(source)
    site.world.step(thread, lambda _turn: replied(lists(2)), workdir=str(site.world.place))
    assert step(site, thread) == "split"
    return thread


def test_a_branch_is_stepped_in_a_second_clone_and_joined_in_a_third(
    site: Site, world: World, hub: Path, git: Git, at: Split
) -> None:
    first, second = at.children
    site.push()
    b = another(world, str(hub), name="b")
    finish_with(b, first)
    finish_with(site, second)
    assert b.push().failure() is None
    assert site.push().failure() is None

    c = another(world, str(hub), name="c")
    assert step(c, at.thread) == "ready"

    assert c.push().failure() is None
    for each in (site, b):
        assert each.fetch().failure() is None
        assert refs(each) == refs(c)
        each.world.assert_whole()
    run_to_end(b, at.thread)
    assert git("fsck", "--strict", "--no-dangling", cwd=hub) == ""


def finish_with(site: Site, thread: ThreadId) -> None:
    while site.find(f"archive/{thread}") is None:
        step(site, thread)


def test_three_clones_work_on_six_branches_and_one_joins(
    site: Site, world: World, hub: Path, git: Git
) -> None:
    thread = begun(site, FILES)
    site.push()
    b, c = (another(world, str(hub), name=name) for name in "bc")
    clones = [site, b, c]
    for each in clones:
        assert step(each, thread) == "split"
    for number, child in enumerate(Split(world, thread).children):
        mine = clones[number % 3]
        list(list_leaves(mine.world.store, mine.world.snapshot(thread)))
        finish_with(mine, child)
        assert mine.push().failure() is None
    for each in clones:
        assert each.fetch().failure() is None

    assert step(c, thread) == "ready"

    state = c.world.snapshot(thread).get_present().state
    assert state["reports"] == [{"writer_done": True} for _ in range(6)]
    assert c.push().failure() is None
    assert [each.fetch().failure() for each in clones] == [None] * 3
    assert refs(site) == refs(b) == refs(c) == refs_of(hub, "threads", "archive")
    run_to_end(b, thread)
    assert b.push(thread).failure() is None
    assert git("fsck", "--strict", "--no-dangling", cwd=hub) == ""
    assert verify(open_store(str(hub)), []).troubles == ()


def test_two_clones_that_join_the_same_branches_agree_after_one_fork(
    site: Site, world: World, hub: Path, at: Split
) -> None:
    site.push()
    b = another(world, str(hub), name="b")
    b.world.kill(at.children[0], reason="theirs")
    for each in (site, b):
        run_to_end(each, at.thread)
    assert b.push().failure() is None
    hints = {each.hint for each in site.fetch().of("diverged")}
    assert len(hints) == 2
    assert all(f"`uwf thread fork {at.thread} " in hint for hint in hints)

    world.fork(at.thread)

    assert site.fetch().failure() is None
    assert site.push().failure() is None
    assert refs_of(hub) == refs_of(site.path)


def test_branches_that_one_clone_has_joined_are_told_to_fork_with_their_thread(
    site: Site, world: World, hub: Path, at: Split
) -> None:
    site.push()
    b = another(world, str(hub), name="b")
    step(b, at.children[0])
    assert b.push().failure() is None
    world.kill(at.children[0], reason="mine")
    run_to_end(site, at.thread)

    (apart,) = site.fetch().of("diverged")
    assert f"`uwf thread fork {at.thread} --at {site.find(f'archive/{at.thread}')}`" in apart.hint
    world.fork(at.thread)

    assert (site.push().failure(), site.fetch().failure()) == (None, None)
    assert refs_of(hub) == refs_of(site.path)


def test_branches_that_a_thread_was_forked_away_from_are_not_pushed(
    site: Site, world: World, hub: Path
) -> None:
    thread = begun(site)
    site.push()
    b = another(world, str(hub), name="b")
    b.world.amend(thread, limits={"maxSteps": 20})
    assert b.push().failure() is None
    assert step(site, thread) == "split"
    at = Split(world, thread)
    list(list_leaves(world.store, at.tip))
    first = at.children[0]
    finish_with(site, first)
    for _ in range(2):
        assert is_refused(site.push().failure(), "fetch-first")
        assert set(refs_of(hub, "threads", "archive")) == {f"threads/{thread}"}
        assert is_refused(site.push(first).failure(), "fetch-first")
    assert site.fetch().failure() is not None
    assert is_refused(site.push().failure(), "push-diverged")

    fork = world.fork(thread)

    for _ in range(2):
        assert site.push().failure() is None
        assert site.fetch().failure() is None
    assert set(refs_of(hub, "threads", "archive")) == {f"threads/{thread}", f"threads/{fork}"}
    assert site.find(f"archive/{first}")


@pytest.mark.parametrize("is_there", [False, True])
def test_branches_of_a_thread_that_is_damaged_here_stay_with_it(
    site: Site, hub: Path, git: Git, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "1800000000 +0000")
    thread = begun(site)
    if is_there:
        site.push()
    before = refs_of(hub, "threads", "archive")
    assert step(site, thread) == "split"
    at = Split(site.world, thread)
    list(list_leaves(site.world.store, at.tip))
    words = ("-p", at.tip.commit.oid, "-m", "a note", f"{at.tip.commit.oid}^{{tree}}")
    first, note = at.children[0], git("commit-tree", *words, cwd=site.path).strip()
    git("update-ref", f"refs/threads/{thread}", note, cwd=site.path)

    for named in ((), (first,)):
        pushed = site.push(*named)
        assert is_refused(pushed.failure(), "push-damaged")
        assert [ref for ref, _why in pushed.damaged] == [f"refs/threads/{thread}"]
        assert refs_of(hub, "threads", "archive") == before


def test_branches_of_branches_that_ended_elsewhere_are_joined(
    site: Site, world: World, hub: Path
) -> None:
    """A branch whose own branches all have ended takes a step: it joins them."""
    thread = begun_nested(site, FILES.replace("{type: agent, agentId: reader}", INNER))
    step(site, thread)
    step(site, thread)
    grandchildren = [each for each in with_branches(world.store, [thread]) if is_leaf(world, each)]
    assert len(grandchildren) == 4
    for each in grandchildren:
        finish(world, each)
    site.push()
    b = another(world, str(hub), name="b")

    run_to_end(b, thread)

    b.world.assert_sound(thread)


def is_leaf(world: World, thread: ThreadId) -> bool:
    entry: str = world.snapshot(thread).get_start().payload.get("entry", "")
    return entry.count("/") == 3


def test_branches_that_went_on_since_the_last_push_go_along(site: Site, hub: Path) -> None:
    at = split_and_begin(site)
    site.push(at.thread)
    site.world.patch(at.thread, {"more": 1})
    site.push(at.thread)
    first, _second = at.children
    finish_with(site, first)
    assert site.push(at.thread).failure() is None
    assert f"archive/{first}" in refs_of(hub)
    run_to_end(site, at.thread)

    assert site.push(at.thread).failure() is None

    assert refs_of(hub) == refs(site)


# What may be pushed alone.


def test_a_branch_alone_may_be_pushed_and_is_whole(site: Site, world: World, hub: Path) -> None:
    first, _second = split_and_begin(site).children
    step(site, first)

    assert site.push(first).failure() is None

    assert set(refs_of(hub)) == {f"threads/{first}"}
    b = another(world, str(hub), name="b")
    step(b, first)
    assert b.find(f"archive/{first}")
    b.world.assert_whole()


def push_only(site: Site, hub: Path, *names: str) -> list[Refusal]:
    """Push refs as plain git does, judged by the rules; return the refusals."""
    there = open_store(str(hub))
    updates = [
        RefUpdate(f"refs/{name}", there.refs.find(f"refs/{name}"), site.find(name))
        for name in names
    ]
    told = check_received(with_objects_of(site, there), updates)
    if not told:
        for update in updates:
            assert update.new is not None
            if update.old is None:
                assert there.refs.create(update.name, update.new)
            else:
                assert there.refs.advance(update.name, seen=update.old, to=update.new)
    return told


def with_objects_of(site: Site, hub: Store) -> Store:
    return hub._replace(objects=open_store(str(site.path)).objects)


# Hostile joins.


def test_a_join_that_leaves_work_of_the_hub_is_refused(site: Site, world: World, hub: Path) -> None:
    at = split_and_begin(site)
    first, second = at.children
    site.push()
    b = another(world, str(hub), name="b")
    join_otherwise(at)
    assert world.snapshot(at.thread).record.event == "join"
    step(b, first)
    assert b.push().failure() is None

    told = push_only(site, hub, f"threads/{at.thread}")
    pushed = site.push(at.thread)

    assert f"cannot be: the branch is at {b.world.tip(first)} here" in told[0].message
    assert f"it has joined branch {first}" in str(failure_of(pushed, "push-refused", Refused))
    assert [each.ref for each in pushed.pushed][:1] == [f"refs/archive/{second}"]
    assert verify(open_store(str(hub)), []).troubles == ()


def test_a_join_comes_with_its_branches_or_not_at_all(
    site: Site, world: World, hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another end of a branch comes to a plain hub after the push has seen its refs."""
    world.caller = world.caller._replace(environ=os.environ)
    at = split_and_begin(site)
    first, _second = at.children
    site.push()
    b = another(world, str(hub), name="b")
    finish_with(b, first)
    join_otherwise(at)
    before = world.store.refs.find(f"refs/uwf/remotes/origin/threads/{at.thread}")

    def push_late(*words: Any, **named: Any) -> PushPlan:
        monkeypatch.undo()
        assert b.push().failure() is None
        return plan_push(*words, **named)

    monkeypatch.setattr(push, "plan_push", push_late)

    assert isinstance(site.push().failure(), Conflict)
    assert refs_of(hub)[f"threads/{at.thread}"] == before
    assert verify(open_store(str(hub)), []).troubles == ()
    # A fork keeps what was joined here, and the thread follows the hub.
    site.fetch()
    world.fork(first)
    world.fork(at.thread)
    assert world.tip(at.thread) == before
    run_to_end(site, at.thread)
    assert site.push(at.thread).failure() is None
    for each in (world.store, open_store(str(hub))):
        assert verify(each, []).troubles == ()


def test_a_join_of_a_branch_that_ended_otherwise_at_the_hub_is_refused(
    site: Site, world: World, hub: Path, at: Split
) -> None:
    first, _second = at.children
    b = end_elsewhere(site, hub, first)
    join_otherwise(at)

    told = push_only(site, hub, f"threads/{at.thread}")

    assert [
        f"the branch is at {b.find(f'archive/{first}')} here" in each.message for each in told
    ] == [True]


def test_a_fork_keeps_a_join_of_branches_that_ended_otherwise_at_the_hub(
    site: Site, world: World, hub: Path, at: Split
) -> None:
    """Two clones finish one thread; who is late forks theirs, and shares that."""
    first, _second = at.children
    site.push()
    b = another(world, str(hub), name="b")
    run_to_end(b, at.thread)
    assert b.push().failure() is None
    world.kill(first, reason="mine wins")
    run_to_end(site, at.thread)
    assert site.fetch().failure() is not None

    fork = world.fork(at.thread)

    assert site.push(fork).failure() is None
    run_to_end(site, fork)
    assert site.push(fork).failure() is None
    assert b.fetch().failure() is None
    for each in (site.world.store, b.world.store, open_store(str(hub))):
        assert verify(each, []).troubles == ()


TWICE = CHECKS.replace(
    "    - {type: agent, agentId: closer, output: done}\n",
    "    - {type: parallel, nodes: [{type: agent, agentId: one}, {type: agent, agentId: two}]}\n",
)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("steps", [1, 2, 4])
def test_a_fork_does_not_carry_a_hostile_join_past_the_hub(
    site: Site, world: World, hub: Path, *, is_first: bool, steps: int
) -> None:
    """In one push with a fork that shares it, the join is refused, in whatever order."""
    at = split_and_begin(site, TWICE)
    end_elsewhere(site, hub, at.children[0])
    join_otherwise(at)
    # Splits again, and joins once more.
    for _ in range(steps - 1):
        world.step(at.thread, plays)
    fork = world.fork(at.thread)
    world.patch(at.thread, {"more": 1})
    there = open_store(str(hub))
    names = [f"refs/threads/{each}" for each in (fork, at.thread)]
    updates = [
        RefUpdate(name, there.refs.find(name), site.find(name.removeprefix("refs/")))
        for name in (names if is_first else names[::-1])
    ]

    told = check_received(with_objects_of(site, there), updates)

    assert {each.name for each in told} == {f"refs/threads/{at.thread}"}


def test_a_push_of_a_join_and_of_another_end_of_its_branch_is_refused(
    site: Site, world: World, hub: Path, at: Split
) -> None:
    first, _second = at.children
    run_to_end(site, at.thread)
    other = copy_commit(world.store, world.snapshot(first).commit.oid)
    says("end: ", "end: not ")(other)
    made = put(world.store, other)
    updates = [
        RefUpdate(f"refs/archive/{at.thread}", None, site.find(f"archive/{at.thread}")),
        RefUpdate(f"refs/archive/{first}", None, made),
    ]

    told = check_received(with_objects_of(site, open_store(str(hub))), updates)

    assert any(f"the branch is at {made} in the same push" in each.message for each in told)


def test_a_forged_branch_is_refused_and_the_others_go_through(
    site: Site, world: World, hub: Path, at: Split
) -> None:
    first, second = at.children
    site.push(at.thread)
    step(site, first)
    step(site, second)
    head = world.snapshot(first)
    forged = copy_commit(world.store, head.commit.oid)
    says("Uwf-At: 0/1/0", "Uwf-At: 0/2")(forged)
    made = put(world.store, forged)
    assert world.store.refs.advance(f"refs/threads/{first}", seen=head.commit.oid, to=made)

    failure = failure_of(site.push(), "push-refused", Refused)
    assert failure.facts["refs"] == [f"refs/threads/{first}"]
    assert refs_of(hub)[f"threads/{second}"] == site.find(f"threads/{second}")


def test_what_a_remote_forged_is_not_fetched(site: Site, world: World, hub: Path) -> None:
    first, second = split_and_begin(site).children
    site.push()
    b = another(world, str(hub), name="b")
    tip = open_store(str(hub)).refs.find(f"refs/threads/{first}")
    assert tip is not None
    finish_with(b, second)
    b.push()
    b.world.patch(first, {"a": 1})
    patched = b.world.tip(first)
    forged = copy_commit(b.world.store, patched)
    says("Uwf-Depth: 0", "Uwf-Depth: 7")(forged)
    made = put(b.world.store, forged)
    for oid in (made,):
        assert tell(b.world.store, first, oid)
    b.world.store.refs.advance(f"refs/threads/{first}", seen=patched, to=made)
    add_remote(world.store, "evil", str(b.path), cwd=str(world.place))

    assert [each.ref for each in site.fetch("evil").of("refused")] == [f"refs/threads/{first}"]
    assert site.find(f"threads/{first}") == tip
    assert site.find(f"archive/{second}")


# Cost.


def test_a_push_of_one_step_reads_as_much_at_any_depth(site: Site, world: World) -> None:
    thread = world.begun(LINE.replace("COUNT", "80"))
    counts = []
    for steps in (4, 64):
        for _ in range(steps):
            step(site, thread)
        site.push(thread)
        step(site, thread)
        world.reopen()
        counting = CountingObjects(world.store.objects)
        store = world.store._replace(objects=counting)
        assert push_remote(store, world.caller, None, [thread]).failure() is None
        counts.append(counting.count)

    assert counts[1] <= counts[0]


def test_a_push_of_many_branches_reads_shared_history_once(world: World, hub: Path) -> None:
    many, one = push_costs(world, hub, 8)

    assert many < 3 * one


def test_a_new_branch_is_sent_without_what_its_thread_has_there(
    site: Site, world: World, hub: Path
) -> None:
    """Also where the thread has gone on from the split, so that no ref is at the split."""
    at = split(site)
    site.push(at.thread)
    world.patch(at.thread, {"more": 1})
    site.push(at.thread)
    list(list_leaves(world.store, at.tip))
    first, second = at.children
    step(site, first)
    there = {f"refs/{name}": oid for name, oid in refs_of(hub, "threads", "archive").items()}
    tip = site.find(f"threads/{first}")
    assert tip is not None
    objects = world.store.objects

    beginnings = list_beginnings(objects, [tip], set(), heads_of_refs(objects, there))

    assert beginnings == {at.tip.commit.parents[0]}
    sent = list_new_objects(objects, tip, beginnings)
    assert len(sent) < len(list_new_objects(objects, tip, set())) / 2
    assert site.push(second, first).failure() is None
    assert refs_of(hub) == refs(site)


def test_two_clones_that_finish_one_branch_agree_after_a_fork(
    site: Site, world: World, hub: Path, at: Split
) -> None:
    first, second = at.children
    b = end_elsewhere(site, hub, first)
    world.kill(first, reason="mine")
    failure = site.fetch().failure()
    assert failure is not None
    assert failure.hint is not None
    assert "makes yours a thread of its own, and this one follows the remote" in failure.hint

    forked = fork_thread(world.store, world.caller, ForkRequest(first), thread=world.new_id())

    assert forked.follows == "origin"
    finish_with(site, second)
    run_to_end(site, at.thread)
    assert site.push().failure() is None
    assert b.fetch().failure() is None
    assert b.world.snapshot(at.thread).record.status == "completed"
    b.world.assert_sound(at.thread)
