"""Several stores, and a hub between them."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from commands.world import DEMO, World, make_store, replied

from uwf_git.commands.remote.fetch import Fetched, clone_store, fetch_remote
from uwf_git.commands.remote.push import Pushed, push_remote
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.errors import UwfError
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.git.config import set_config
from uwf_git.store.remotes.remotes import add_remote
from uwf_git.store.store import open_store


@dataclass(slots=True)
class Site:
    """A store with a remote, and a caller."""

    world: World

    @property
    def path(self) -> Path:
        """The git directory."""
        return Path(self.world.store.path)

    def push(self, *threads: str, remote: str | None = None) -> Pushed:
        """Push to the hub."""
        self.world.reopen()
        return push_remote(self.world.store, self.world.caller, remote, threads)

    def fetch(self, remote: str | None = None, *threads: ThreadId) -> Fetched:
        """Fetch from the hub, as the next process would."""
        self.world.reopen()
        return fetch_remote(self.world.store, self.world.caller, remote, threads)

    def step(self, thread: ThreadId, *, ok: bool = False) -> None:
        """Take a step; each role always replies the same."""
        self.world.reopen()
        workdir = str(self.world.place)
        self.world.step(thread, lambda turn: _play(turn, ok=ok), command="mine", workdir=workdir)

    def end(self, thread: ThreadId) -> None:
        """Take steps until it ends."""
        while self.world.store.refs.find(f"refs/archive/{thread}") is None:
            self.step(thread, ok=True)

    def find(self, ref: str) -> Oid | None:
        """Return the commit of a ref, given without ``refs/``."""
        return open_store(str(self.path)).refs.find(f"refs/{ref}")

    def refs(self, *folders: str) -> dict[str, Oid]:
        """Return the refs of these folders, by default of the three that are pushed."""
        return refs_of(self.path, *folders)


Sites = tuple[Site, Site, ThreadId]
Shared = tuple[Site, ThreadId]


def _play(turn: Turn, *, ok: bool) -> Played:
    return replied({"text": "some words"} if turn.role == "writer" else {"ok": ok})


def refs_of(path: Path, *folders: str) -> dict[str, Oid]:
    """Return the refs of a repository in these folders, by default the three that are pushed."""
    store = open_store(str(path))
    found = {}
    for folder in folders or ("threads", "archive", "workflows"):
        for name in store.refs.names(f"refs/{folder}/"):
            oid = store.refs.find(f"refs/{folder}/{name}")
            assert oid is not None
            found[f"{folder}/{name}"] = oid
    return found


def failure_of(done: Pushed | Fetched, code: str, kind: type[UwfError] = UwfError) -> UwfError:
    """Return the failure of a push or fetch, which is of that code and class."""
    failure = done.failure()
    assert isinstance(failure, kind)
    assert failure.code == code
    return failure


def make_hub(place: Path) -> Path:
    """Make an empty bare repository."""
    return Path(make_store(place / "hub.git").path)


def share(world: World, hub: str) -> Shared:
    """Return a site with the remote *hub* and an unpushed thread of one step."""
    site = Site(world)
    thread = world.begun(DEMO)
    site.step(thread)
    add_remote(world.store, "origin", hub, cwd=str(world.place))
    return site, thread


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """Return an empty bare repository to push to."""
    return make_hub(tmp_path)


@pytest.fixture
def shared(world: World, hub: Path) -> Shared:
    """Return a site with the hub as its remote, and its unpushed thread."""
    return share(world, str(hub))


def empty(world: World, hub: str, *, name: str) -> Site:
    """Return a store that has *hub* as its remote, and nothing yet."""
    store = make_store(world.place.parent / f"{name}.git")
    add_remote(store, "origin", hub, cwd=str(world.place))
    return Site(World(world.place, store, world.caller, world.new_id))


def another(world: World, hub: str, *, name: str = "b") -> Site:
    """Clone *hub*."""
    path = world.place.parent / f"{name}.git"
    assert clone_store(world.caller, hub, str(path)).fetched.failure() is None
    set_config(f"{path}/config", "uwf.fsync", "false")
    place = world.place.parent / f"place-{name}"
    place.mkdir()
    store = open_store(str(path), environ=world.caller.environ)
    return Site(World(place, store, world.caller._replace(cwd=str(place)), world.new_id))


@pytest.fixture
def sites(world: World, hub: Path) -> Sites:
    """Return two stores that share one thread through a hub."""
    site, thread = share(world, str(hub))
    site.push()
    return site, another(world, str(hub)), thread
