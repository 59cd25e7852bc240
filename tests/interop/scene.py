"""The scene of a hostile push: a hub with a thread of two steps, and a clone that has its third."""

import re
from dataclasses import dataclass
from pathlib import Path

from commands.world import World, says
from interop.forge import Forge, take_apart
from interop.hub import Hub, Pushed, make_hub, push

from uwf_git.model.names import ThreadId


@dataclass
class Scene:
    """A hub with a thread of two steps, and a clone that has its third."""

    hub: Hub
    world: World
    thread: ThreadId
    honest: Forge
    """The third step."""

    @property
    def ref(self) -> str:
        """The thread's."""
        return f"refs/threads/{self.thread}"

    def push(self, commit: str, ref: str | None = None) -> Pushed:
        """Push a commit as the thread's next one, or to another ref."""
        return push(self.world, f"+{commit}:{ref or self.ref}")

    def refuse(self, commit: str, ref: str | None = None) -> str:
        """Push, and return the output of the hub; it must have refused everything."""
        before = self.hub.refs()
        pushed = self.push(commit, ref)
        assert not pushed.accepted
        assert self.hub.refs() == before
        assert "Traceback" not in pushed.told
        assert "internal error" not in pushed.told
        return pushed.told

    def name(self, trailer: str) -> str:
        """Return the value of a trailer of the third step."""
        return self.honest.message.decode().partition(f"{trailer}: ")[2].partition("\n")[0]


def make_scene(place: Path) -> Scene:
    """Push a thread of two steps to a new hub in *place*, and take the third step."""
    hub = make_hub(place)
    world = hub.clone()
    thread = world.begun()
    world.step(thread, says({"text": "one"}, "First words."))
    world.step(thread, says({"ok": False}, "Second words."))
    assert push(world, f"refs/threads/{thread}", "refs/workflows/demo").accepted
    world.step(thread, says({"text": "two"}, "Third words.", state={"round": 1}))
    return Scene(hub, world, thread, take_apart(world.store, world.snapshot(thread).commit.oid))


def assert_refused(scene: Scene, forge: Forge, told: str) -> None:
    """Push the forged commits; the hub refuses them with a line that matches *told*."""
    said = scene.refuse(forge.commit())
    lines = [line for line in said.splitlines() if line.startswith("remote: ")]
    assert any(re.search(told, line) for line in lines), said


def node_of(forge: Forge, kind: str) -> str:
    """Return the path of the first node of a type."""
    return next(
        path
        for path in forge.files
        if path.endswith(".json") and "/" in path and forge.read(path)["type"] == kind
    )
