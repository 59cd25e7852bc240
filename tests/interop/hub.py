"""A shared store with its hooks, and clones that push to it with plain git."""

import itertools
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
from commands.sharing import Site
from commands.world import World, make_store
from interop.honest_flows import git
from seal import START_MS

from uwf_git.commands.admin import init_shared
from uwf_git.commands.caller import Caller
from uwf_git.commands.remote.fetch import fetch_remote
from uwf_git.commands.remote.push import push_remote
from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.store.git.config import set_config
from uwf_git.store.store import open_store

BAD = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")
TOLD = "points at a commit of thread"


class Pushed(NamedTuple):
    """The result of a push."""

    accepted: bool
    told: str
    """The output of git; lines of the remote without padding."""

    @property
    def errors(self) -> list[str]:
        """The lines in which the hook refused."""
        return re.findall(r"^remote: error: (.*?) *$", self.told, re.MULTILINE)


@dataclass(slots=True)
class Hub:
    """A shared store on this machine."""

    path: Path
    clones: int = 0
    place: Path = field(init=False)

    def __post_init__(self) -> None:
        self.place = self.path.parent

    def refs(self) -> dict[str, str]:
        """Return every ref and its value."""
        listed = git("for-each-ref", "--format=%(refname) %(objectname)", cwd=self.path)
        return dict(line.split() for line in listed.splitlines())

    def set(self, name: str, value: str) -> None:
        """Set something in its config."""
        set_config(str(self.path / "config"), name, value)

    def clone(self) -> World:
        """Return an empty store that has this hub as remote `hub`."""
        self.clones += 1
        place = self.place / f"clone-{self.clones}"
        place.mkdir()
        store = make_store(place / "store.git")
        set_config(f"{store.path}/config", "remote.hub.url", str(self.path))
        clock = itertools.count(START_MS + self.clones * 1_000_000, 1000).__next__
        numbers = itertools.count(1)
        caller = Caller(clock, dict(os.environ), str(place))
        ids = lambda: ThreadId(f"01J{self.clones:03}{next(numbers):020}")  # noqa: E731 (a name for it says no more)
        return World(place, open_store(store.path, environ=os.environ), caller, ids)


def make_hub(place: Path) -> Hub:
    """Make a shared store in *place*, as `uwf init --shared` does."""
    path = str(place / "hub.git")
    init_shared(path, str(place), os.environ, python=sys.executable)
    set_config(f"{path}/config", "uwf.fsync", "false")
    return Hub(Path(path))


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    """Return a shared store with its hooks."""
    return make_hub(tmp_path)


@pytest.fixture
def world(hub: Hub) -> World:
    """Return a clone of it."""
    return hub.clone()


def push(world: World, *words: str) -> Pushed:
    """Push with plain git: ``push(world, "--atomic", "refs/threads/…")``."""
    command = ["git", "push", *(word for word in words if word.startswith("-"))]
    command += ["hub", *(word for word in words if not word.startswith("-"))]
    ran = subprocess.run(
        command, cwd=world.store.path, capture_output=True, text=True, errors="replace", check=False
    )
    return Pushed(ran.returncode == 0, ran.stderr)


def push_what_is_wrong(site: Site, ref: str) -> Refused:
    """Push with a thread BAD that points at the commit of *ref*; the hub says what is wrong."""
    tip = site.find(ref)
    assert tip is not None
    assert site.world.store.refs.create(f"refs/threads/{BAD}", tip)
    failure = site.push().failure()
    assert isinstance(failure, Refused)
    assert failure.code == "push-refused"
    assert TOLD in failure.message
    return failure


def push_all(world: World) -> None:
    """Push everything by uwf."""
    world.reopen()
    if failure := push_remote(world.store, world.caller, "hub", ()).failure():
        raise failure


def fetch_all(world: World) -> None:
    """Fetch everything by uwf."""
    world.reopen()
    if failure := fetch_remote(world.store, world.caller, "hub").failure():
        raise failure


def refused(world: World, *words: str) -> Pushed:
    """Push with plain git; the hub must not accept it."""
    pushed = push(world, *words)
    assert not pushed.accepted, pushed.told
    return pushed
