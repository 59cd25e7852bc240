"""Power that fails at any moment: a ref is never on the disk before the objects under it."""

import re
from collections.abc import Callable, Iterable

import pytest
from commands.world import DEMO, World
from store.power import Image, Seen, images_of, record
from store.whole_refs import check_refs, refs_in

from uwf_git.commands.admin import set_setting
from uwf_git.commands.cas import put_payload
from uwf_git.model.names import ThreadId

THREAD = re.compile(r"refs/(threads|archive)/(\w+)")


@pytest.fixture
def world(world: World) -> World:
    """Return a world with fsync, since these tests simulate a power loss."""
    world.configure("uwf.fsync", "true")
    return world


def lose_power(world: World, action: Callable[[World], object]) -> int:
    """Check every state of the disk at every moment of *action*; return their number."""
    events = record(world.store.path, lambda: action(world))
    first, last = (Image(*event) for event in (events[0], events[-1]) if isinstance(event, Seen))
    before = dict(refs_in(first))
    threads = threads_of(before)
    archived = {f"refs/threads/{thread}" for thread in threads}
    count = 0
    for images in images_of(events):
        count += len(images)
        for image in images:
            refs = dict(refs_in(image))
            check_refs(image, refs)
            assert threads <= threads_of(refs)
            assert before.keys() - refs.keys() <= archived
            assert image.find("config") in {first.find("config"), last.find("config")}
            assert image.find("HEAD") == first.find("HEAD")
    # What is done is done, whatever happens now.
    assert dict(refs_in(images[0])) == dict(refs_in(last))
    assert images[0].find("config") == last.find("config")
    print(f"{count} images that a power loss may leave, all whole")  # noqa: T201 - for `pytest -rA`
    return count


def threads_of(refs: Iterable[str]) -> set[str]:
    return {found[2] for found in map(THREAD.fullmatch, refs) if found}


def test_a_put_survives_a_power_loss(world: World) -> None:
    world.put()
    assert lose_power(world, lambda each: each.put(DEMO.replace("Writes.", "Draws."))) > 100


def test_a_start_survives_a_power_loss(world: World) -> None:
    world.put()
    assert lose_power(world, World.start) > 100


def test_a_step_survives_a_power_loss(world: World, thread: ThreadId) -> None:
    assert lose_power(world, lambda each: each.step(thread)) > 100


def test_an_end_survives_a_power_loss(world: World) -> None:
    thread = world.stepped(times=2)
    assert lose_power(world, lambda each: each.step(thread)) > 500


def test_a_kill_survives_a_power_loss(world: World, thread: ThreadId) -> None:
    assert lose_power(world, lambda each: each.kill(thread)) > 500


def test_a_node_put_by_hand_survives_a_power_loss(world: World) -> None:
    assert lose_power(world, lambda each: put_payload(each.store, each.caller, "Text", "a")) > 100


def test_a_setting_survives_a_power_loss(world: World) -> None:
    set_setting(world.store, "uwf.agent", "old")
    assert lose_power(world, lambda each: set_setting(each.store, "uwf.agent", "new")) > 20
