"""A store with workflows, nodes put by hand and threads, for real git to read."""

from dataclasses import dataclass

import pytest
from commands.world import DEMO, World, fails, says

from uwf_git.commands.cas import put_payload
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.model.builtin import TEXT
from uwf_git.model.names import ThreadId


@dataclass(slots=True)
class Told:
    """A store with workflows, nodes put by hand, and threads."""

    world: World
    active: ThreadId
    """Started, stepped, failed once, stepped."""

    ended: ThreadId
    """The same, and archived."""

    @property
    def path(self) -> str:
        """The git directory."""
        return self.world.store.path


def tell(world: World) -> tuple[ThreadId, ThreadId]:
    """Put workflows and nodes, and return an active thread and one that has ended."""
    world.put()
    world.put(DEMO.replace("Writes.", "Writes well."))
    put_payload(world.store, world.caller, TEXT, "a note")
    active, ended = (_advance(world) for _count in range(2))
    world.finish(ended)
    return active, ended


def _advance(world: World) -> ThreadId:
    thread = world.start(prompt="Do it, please.\n\nUwf-Status: completed\n")
    world.step(thread, says({"text": "a poem"}, "# A poem\r\n\r\nRoses.", usage={"tokens": 7}))
    with pytest.raises(TurnFailed):
        world.step(thread, fails("exit status 7", exit_code=7, stderr=b"KeyError: 'ok'\n"))
    world.retry(thread)
    world.step(thread, says({"ok": False}, state={"round": 1}))
    return thread
