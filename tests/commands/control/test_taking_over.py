"""Each verb goes on from what a plain `git fetch` brought, which moves tracking refs only."""

from collections.abc import Callable

import pytest
from commands.sharing import Site, hub, sites
from commands.world import World

from uwf_git.commands.control.change_rules import poke_thread
from uwf_git.commands.control.steer import kill_thread, patch_thread, pause_thread
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.history import walk_history

__all__ = ["hub", "sites"]

VERBS: dict[str, Callable[[World, ThreadId], object]] = {
    "kill": lambda world, thread: kill_thread(world.store, world.caller, thread),
    "patch": lambda world, thread: patch_thread(world.store, world.caller, thread, {"a": 1}),
    "pause": lambda world, thread: pause_thread(world.store, world.caller, thread),
    "poke": lambda world, thread: poke_thread(world.store, world.caller, thread),
}


@pytest.mark.parametrize("verb", VERBS)
def test_verb_goes_on_from_what_git_fetched(
    verb: str, sites: tuple[Site, Site, ThreadId], git: Callable[..., str]
) -> None:
    here, there, thread = sites
    there.step(thread)
    there.push()
    taken = there.find(f"threads/{thread}")
    git("fetch", "--quiet", "origin", cwd=here.path)
    assert here.find(f"threads/{thread}") != taken
    here.world.reopen()

    VERBS[verb](here.world, thread)

    tip = here.world.snapshot(thread)
    assert tip.record.event == verb
    assert [each.commit.oid for each in walk_history(here.world.store, tip.commit.oid)][1] == taken
