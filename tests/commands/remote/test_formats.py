"""Threads and workflows of another format: they are told as such, and never as damage."""

from pathlib import Path

import pytest
from commands.forging import forge, says, troubles
from commands.sharing import Shared, Sites, empty, failure_of
from commands.world import DEMO, World
from refusing import refuses

from uwf_git.commands.receive import check_received
from uwf_git.commands.remote.fetch import refusal_hint
from uwf_git.commands.remove import plan_removals
from uwf_git.model.names import Oid
from uwf_git.store.git.hook_files import RefUpdate
from uwf_git.store.lookup import NODES_REF, put_nodes
from uwf_git.store.objects.commit import NEWER, OLD
from uwf_git.store.store import Store, open_store

GIVE_UP = OLD + "; `git{} update-ref -d {} {}`{} removes it if nobody needs it"


def give_format(store: Store, ref: str, version: int) -> Oid:
    """Let the newest commit of *ref* be of another format."""
    return forge(store, ref, {-1: says("Uwf-Format: 2", f"Uwf-Format: {version}")})[-1]


@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize("folder", ["threads", "archive"])
def test_a_thread_is_neither_damaged_nor_removed(shared: Shared, folder: str, version: int) -> None:
    site, thread = shared
    world, ref = site.world, f"refs/{folder}/{thread}"
    if folder == "archive":
        world.kill(thread)
    tip = give_format(world.store, ref, version)
    hint = GIVE_UP.format(f" -C {world.store.path}", ref, tip, "") if version == 1 else NEWER

    with refuses("bad-message", match=f"^thread {thread}: .*has format {version}") as caught:
        plan_removals(world.store, [thread])
    failure = failure_of(site.push(), "push-damaged")

    assert (caught.value.hint, failure.hint) == (hint, hint)
    assert f"has format {version}" in failure.message


@pytest.mark.parametrize(("version", "words"), [(1, "upgrade yours"), (3, "owner has to upgrade")])
def test_a_hub_says_who_has_to_upgrade(shared: Shared, version: int, words: str) -> None:
    site, thread = shared
    store = site.world.store
    for ref in (f"refs/threads/{thread}", "refs/workflows/demo"):
        tip = give_format(store, ref, version)
        assert store.refs.delete(ref, seen=tip)

        (told,) = check_received(store, [RefUpdate(ref, None, tip)])

        assert words in told.hint


@pytest.mark.parametrize("version", [1, 3])
def test_a_fetch_does_not_advise_to_repair_it(sites: Sites, hub: Path, version: int) -> None:
    site, _other, thread = sites
    expected = {}
    for ref in (f"refs/threads/{thread}", "refs/workflows/demo"):
        tip = give_format(open_store(str(hub)), ref, version)
        hint = GIVE_UP.format("", ref, tip, ", typed in the store that has it,")
        expected[ref] = hint if version == 1 else NEWER

    told = empty(site.world, str(hub), name="c").fetch().of("refused")

    assert {each.ref: refusal_hint(each) for each in told} == expected


@pytest.mark.parametrize(("ref", "number"), [("refs/workflows/demo", 0), (NODES_REF, -1)])
def test_only_a_ref_of_which_nothing_is_read_may_go(world: World, ref: str, number: int) -> None:
    world.put()
    world.put(DEMO.replace("Write until", "Write till"))
    put_nodes(world.store, [], world.caller.signing(world.store))
    forge(world.store, ref, {number: says("Uwf-Format: 2", "Uwf-Format: 1")})

    assert [each.hint for each in troubles(world, ref)] == [OLD]


def test_a_workflow_that_is_in_the_way_is_named(world: World) -> None:
    name = world.put().name
    tip = give_format(world.store, f"refs/workflows/{name}", 1)

    with refuses("bad-message") as caught:
        world.put(DEMO.replace("Write until", "Write till"))

    where = (f" -C {world.store.path}", f"refs/workflows/{name}", tip)
    assert caught.value.hint == GIVE_UP.format(*where, "")
