"""What threads share with those that are here is not read again, and nothing else is believed."""

from commands.flows import copy_commit, put, split_files, tell
from commands.forging import says
from commands.world import World
from dulwich.objects import ObjectID
from fresh_store import fresh_store

from uwf_git.commands.lifecycle.fork import ForkRequest, fork_thread
from uwf_git.commands.remote.reconcile import Arrival, check_arrivals, judge_arrivals
from uwf_git.commands.verify.history import heads_of_refs, heads_of_store, list_beginnings
from uwf_git.model.names import ThreadId
from uwf_git.store.refs.refs import Refs
from uwf_git.store.threads.heads import find_head


def arrival(world: World, thread: ThreadId) -> Arrival:
    head = find_head(world.store, thread)
    assert head is not None
    return Arrival(thread, None, head.commit, archived=head.archived)


def empty_refs() -> Refs:
    return fresh_store().refs


def told(world: World, arrivals: list[Arrival], refs: Refs) -> list[str]:
    store = world.store._replace(refs=refs)
    return [each.message for each in check_arrivals(store, arrivals)]


def test_what_is_in_the_history_of_a_thread_here_is_known(world: World) -> None:
    thread = world.begun()
    world.step(thread)
    first = world.snapshot(thread)
    world.step(thread)
    heads = heads_of_store(world.store)

    assert heads.has(first.commit.oid)
    assert heads.has(first.commit.parents[0])
    assert heads.find(world.new_id()) is None
    other = world.store._replace(refs=empty_refs())
    assert not heads_of_store(other).has(first.commit.oid)
    assert heads_of_store(other, {thread: first.commit.oid}).has(first.commit.parents[0])


def test_a_commit_that_names_a_thread_here_is_not_believed(world: World) -> None:
    """Only what its ref leads back to was checked."""
    thread = world.begun()
    world.step(thread)
    forged = copy_commit(world.store, world.snapshot(thread).commit.oid)
    says("Uwf-Depth: 1", "Uwf-Depth: 2")(forged)

    assert not heads_of_store(world.store).has(put(world.store, forged))


def test_a_damaged_ref_is_no_thread_here(world: World) -> None:
    thread = world.begun()
    with open(f"{world.store.path}/refs/threads/{thread}", "w") as file:
        file.write("nonsense")

    assert heads_of_store(world.store).find(thread) is None


def test_a_branch_of_a_forged_thread_is_refused_unless_that_is_here(world: World) -> None:
    at = split_files(world, 2)
    child = at.children[0]
    tip = at.tip
    before = copy_commit(world.store, tip.commit.parents[0])
    says("Uwf-Depth: 1", "Uwf-Depth: 2")(before)
    split = copy_commit(world.store, tip.commit.oid)
    split.parents = [ObjectID(put(world.store, before).encode())]
    forged = put(world.store, split)
    start = copy_commit(world.store, world.snapshot(child).commit.oid)
    start.parents = [ObjectID(forged.encode())]
    made = put(world.store, start)

    assert told(world, [Arrival(child, None, made, archived=False)], world.store.refs)
    assert tell(world.store, child, made)


def test_forks_and_branches_begin_where_the_others_are(world: World) -> None:
    at = split_files(world, 3)
    fork = world.new_id()
    fork_thread(world.store, world.caller, ForkRequest(at.thread), thread=fork)
    here = at.tip.commit.oid
    refs = {f"refs/threads/{at.thread}": here}
    heads = heads_of_refs(world.store.objects, refs)
    tips = [world.snapshot(each).commit.oid for each in (fork, *at.children)]

    assert list_beginnings(world.store.objects, tips, set(), heads) == {here}
    nobody = heads_of_refs(world.store.objects, {})
    assert list_beginnings(world.store.objects, tips, set(), nobody) == set()
    assert told(world, [arrival(world, fork)], empty_refs()) == []


def test_many_branches_are_checked_in_several_runs(world: World) -> None:
    """The thread passes with the first of them."""
    at = split_files(world, 101)
    arrivals = [arrival(world, each) for each in (at.thread, *at.children)]
    store = world.store._replace(refs=empty_refs())

    assert judge_arrivals(store, arrivals).passed == set(arrivals)
    assert told(world, arrivals[100:], world.store.refs) == []
