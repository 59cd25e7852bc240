"""Fixtures for the tests of the store: one store of each kind, and settling it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.object_store import MemoryObjectStore
from store.signing_keys import key, trusted
from store.story import Story

from uwf_git.store.git.config import set_config
from uwf_git.store.store import Store, create_store, open_store

__all__ = ["key", "trusted"]

BACKENDS = ["bare", "packed", "project", "worktree"]

Git = Callable[..., str]


class Backend:
    """A store of one kind."""

    def __init__(self, kind: str, place: Path, git: Git) -> None:
        self.kind, self._git = kind, git
        self.path = place / ("project" if kind in {"project", "worktree"} else "store.git")
        self.opened = place / "tree" if kind == "worktree" else self.path
        self._make()
        self.store = self._open()

    def settle(self) -> Store:
        """Open the store anew, after git has tidied it up if that is what this kind is about."""
        if self.kind == "packed":
            self._git("pack-refs", "--all", cwd=self.path)
            self._git("gc", "--quiet", "--prune=now", cwd=self.path)
        self.store = self._open()
        return self.store

    def _open(self) -> Store:
        # The disk is not what these tests are about; it would take most of their time.
        self._git("config", "uwf.fsync", "false", cwd=self.path)
        return open_store(str(self.opened))

    def _make(self) -> None:
        if self.kind in {"bare", "packed"}:
            create_store(str(self.path))
        else:
            self.path.mkdir()
            self._git("init", "--quiet", cwd=self.path)
        if self.kind == "worktree":
            self._git("commit", "--quiet", "--allow-empty", "-m", "begin", cwd=self.path)
            self._git("worktree", "add", "--quiet", self.opened, cwd=self.path)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path, git: Git) -> Backend:
    """Return a store of each kind."""
    return Backend(request.param, tmp_path, git)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a bare repository that does not wait for the disk."""
    path = str(tmp_path / "store.git")
    create_store(path)
    set_config(f"{path}/config", "uwf.fsync", "false")
    return open_store(path)


@pytest.fixture
def objects() -> MemoryObjectStore:
    """Return objects that are in memory alone."""
    return MemoryObjectStore()


@pytest.fixture
def story(store: Store, clock: Callable[[], int]) -> Story:
    """Return a thread that has begun."""
    return Story(store, clock)
