"""The rules as a whole, on a store and its objects; hostile clients are in interop/."""

import pytest
from commands.flows import Split
from commands.forging import (
    WRITER,
    find_blob,
    forge,
    place,
    put_raw_commit,
    tip_of,
    troubles,
    twin_role,
)
from commands.world import DEMO, World
from fresh_store import fresh_store
from store.small_packs import lose

from uwf_git.commands.cas import put_payload
from uwf_git.commands.receive import check_received
from uwf_git.commands.start import ForkRequest, fork_thread
from uwf_git.model.builtin import TEXT
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.git.hook_files import RefUpdate
from uwf_git.store.objects.commit import read_raw_commit
from uwf_git.store.store import Store
from uwf_git.store.threads.local_files import set_workdir

WORKFLOW = "refs/workflows/demo"


def empty(store: Store) -> Store:
    """Return the store without its refs, as before the first push."""
    return store._replace(refs=fresh_store().refs)


def everything(world: World) -> list[RefUpdate]:
    """Return a push of all refs."""
    refs = world.store.refs
    names = [
        prefix + name
        for prefix in ("refs/threads/", "refs/archive/", "refs/workflows/", "refs/cas/")
        for name in refs.names(prefix)
    ]
    return [RefUpdate(name, None, refs.find(name)) for name in names]


@pytest.fixture
def busy(world: World) -> World:
    """Return a world with every event in its threads."""
    active, ended = world.begun(), world.start()
    world.fail(active)
    world.retry(active)
    world.step(active)
    while world.step(ended).role is not None:
        pass
    put_payload(world.store, world.caller, TEXT, "a note")
    for thread in (active, ended):
        request = ForkRequest(thread, reason="why")
        fork = fork_thread(world.store, world.caller, request, thread=world.new_id())
    world.kill(fork.thread, reason="enough")
    return world


def test_whatever_uwf_writes_may_be_pushed(busy: World) -> None:
    updates = everything(busy)

    assert len(updates) == 6
    assert check_received(empty(busy.store), updates) == []


def test_whatever_is_there_already_may_be_pushed_again(busy: World) -> None:
    assert check_received(busy.store, everything(busy)) == []


@pytest.mark.parametrize("comes", ["a version", "a thread", "a thread with its workflow"])
def test_another_payload_under_the_name_of_a_node_is_refused(comes: str, world: World) -> None:
    world.put()
    thread, hub = world.start(), empty(world.store)
    ref = f"refs/threads/{thread}" if "thread" in comes else WORKFLOW
    if "with" not in comes:
        hub.refs.create(WORKFLOW, tip_of(world.store, WORKFLOW))
    if ref == WORKFLOW:
        world.put(DEMO.replace("Check.", "Look."))
    forge(world.store, ref, {-1: twin_role(world.store)})
    updates = [each for each in everything(world) if "with" in comes or each.name == ref]

    (refusal,) = check_received(hub, updates)
    assert refusal.message.startswith(f"node {WRITER} has two payloads: this one, and another ")


def test_a_damaged_workflow_of_the_hub_refuses_no_thread_of_another_put(world: World) -> None:
    world.put()
    old, hub = tip_of(world.store, WORKFLOW), empty(world.store)
    hub.refs.create(WORKFLOW, old)
    assert world.store.refs.delete(WORKFLOW, seen=Oid(old))
    world.put()
    world.start()
    lose(world.store, find_blob(world.store, Oid(old), place(WRITER)))
    threads = [each for each in everything(world) if each.name != WORKFLOW]

    assert check_received(hub, threads) == []


@pytest.mark.parametrize(("kind", "other"), [("threads", "archive"), ("archive", "threads")])
def test_a_thread_is_refused_where_its_status_does_not_belong(
    busy: World, kind: str, other: str
) -> None:
    for update in everything(busy):
        if update.name.startswith(f"refs/{kind}/"):
            moved = update._replace(name=update.name.replace(kind, other))
            assert [each.name for each in check_received(empty(busy.store), [moved])] == [
                moved.name
            ]


def test_a_branch_has_the_end_that_its_thread_has_joined(world: World, split: Split) -> None:
    branch = split.children[0]
    active, archive = f"refs/threads/{branch}", f"refs/archive/{branch}"
    begun = world.tip(branch)
    world.kill(branch, reason="elsewhere")
    other = tip_of(world.store, archive)
    world.store.refs.delete(archive, seen=other)
    world.store.refs.create(active, begun)
    set_workdir(world.store, branch, str(world.place))
    split.finish_branches()
    split.step()
    store = empty(world.store)
    store.refs.create(f"refs/threads/{split.thread}", split.tip.commit.oid)

    assert check_received(store, [RefUpdate(archive, None, split.tip.commit.parents[1])]) == []
    (told,) = check_received(store, [RefUpdate(archive, None, other)])
    assert "has joined it at" in told.message


def test_damaged_ref_of_the_store_is_a_refusal(world: World, thread: ThreadId) -> None:
    tip = world.tip(thread)
    with open(f"{world.store.path}/refs/threads/{thread}", "w") as file:
        file.write("nonsense")

    (told,) = check_received(world.store, [RefUpdate(f"refs/threads/{thread}", None, tip)])

    assert "does not hold an object id" in told.message


def test_blob_above_the_limit_is_a_refusal(world: World, thread: ThreadId) -> None:
    tip = world.tip(thread)
    store = empty(world.store)
    store.config.values["uwf.maxblobsize"] = ["100"]

    told = check_received(store, [RefUpdate(f"refs/threads/{thread}", None, tip)])

    assert "at most 100 bytes may be pushed here" in told[0].message
    assert len(told) <= 11


@pytest.mark.parametrize("more", [b"gpgsig junk\n", b"gpgsig-sha256 junk\n"])
def test_second_signature_is_a_refusal_and_damage(world: World, more: bytes) -> None:
    thread = world.begun()
    ref, tip = f"refs/threads/{thread}", world.tip(thread)
    raw = read_raw_commit(world.store.objects, tip)
    made = put_raw_commit(world.store, raw.replace(b"\n\n", b"\ngpgsig one\n" + more + b"\n", 1))
    world.store.refs.advance(ref, seen=tip, to=made)

    (told,) = check_received(empty(world.store), [RefUpdate(ref, None, made)])

    assert told.name == ref
    assert [each.commit for each in troubles(world)] == [made]
