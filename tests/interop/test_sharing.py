"""Git carries a store, or one thread of it, somewhere else, and it is whole there."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from commands.world import Git, World, read_thread, says
from interop.told import Told
from refusing import refuses

from uwf_git.commands.inspect.context import get_context
from uwf_git.commands.inspect.show import show_thread
from uwf_git.model.builtin import BUILTIN, walk_closure
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.store.nodes import find_names
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import list_threads
from uwf_git.store.threads.history import Snapshot


def checked(git: Git, path: Path) -> Store:
    """Return the store at *path*, in which git finds nothing wrong."""
    assert git("fsck", "--strict", "--full", "--no-progress", cwd=path) == ""
    return open_store(str(path), environ=os.environ)


@pytest.fixture
def elsewhere(tmp_path: Path, git: Git) -> Path:
    """Return an empty repository that checks pushes."""
    path = tmp_path / "elsewhere.git"
    git("init", "--quiet", "--bare", path, cwd=tmp_path)
    git("config", "receive.fsckObjects", "true", cwd=path)
    return path


def push(git: Git, told: Told, ref: str, to: Path) -> World:
    """Push one ref, and return the remote world."""
    git("push", "--quiet", to, ref, cwd=Path(told.path))
    return replace(told.world, store=checked(git, to))


def without_workdir(document: dict[str, object]) -> dict[str, object]:
    """Return *document* without the one thing that is local by design."""
    return {name: value for name, value in document.items() if name != "workdir"}


def test_a_mirror_has_everything(told: Told, git: Git, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror.git"
    git("clone", "--quiet", "--mirror", told.path, mirror, cwd=tmp_path)
    theirs, ours = checked(git, mirror), told.world.store
    assert git("for-each-ref", cwd=mirror) == git("for-each-ref", cwd=Path(told.path))
    assert list_threads(theirs, archived=True) == list_threads(ours, archived=True)
    for thread in (told.active, told.ended):
        assert read_thread(theirs, thread) == read_thread(ours, thread)


def test_one_pushed_ref_is_a_whole_thread(told: Told, git: Git, elsewhere: Path) -> None:
    there = push(git, told, f"refs/threads/{told.active}", elsewhere)
    ours = told.world.store
    assert len(git("for-each-ref", cwd=elsewhere).splitlines()) == 1
    assert read_thread(there.store, told.active) == read_thread(ours, told.active)
    for view in (show_thread, get_context):
        assert without_workdir(view(there.store, told.active)) == without_workdir(
            view(ours, told.active)
        )
    full = show_thread(there.store, told.active, full=True)
    assert full == {**show_thread(ours, told.active, full=True), "workdir": None}


def test_a_thread_from_elsewhere_goes_on_with_a_command_and_a_workdir(
    told: Told, git: Git, elsewhere: Path
) -> None:
    there = push(git, told, f"refs/threads/{told.active}", elsewhere)
    with refuses("agent-not-trusted"):
        there.step(told.active)
    with refuses("workdir-unknown"):
        there.step(told.active, command="mine")
    there.step(told.active, command="mine", workdir=str(there.place))
    there.step(told.active, says({"ok": True}), command="mine")
    assert there.step(told.active).status == "completed"
    checked(git, elsewhere)


def test_a_pushed_workflow_can_be_started_elsewhere(told: Told, git: Git, elsewhere: Path) -> None:
    there = push(git, told, "refs/workflows/demo", elsewhere)
    assert there.step(there.start()).role == "writer"
    checked(git, elsewhere)


def closure_of(snapshot: Snapshot) -> set[NodeHash]:
    present = snapshot.get_present()
    last = [] if present.last_attempt is None else [present.last_attempt]
    roots = [snapshot.record.node, present.workflow, *present.binding.values(), *last]
    return {node.hash for node in walk_closure(roots, snapshot.get_node)}


@pytest.mark.parametrize("which", ["active", "ended"])
def test_a_thread_holds_what_it_reaches(told: Told, which: str) -> None:
    thread: ThreadId = getattr(told, which)
    snapshot = told.world.snapshot(thread)
    held = set(find_names(snapshot.objects, snapshot.nodes, ""))
    assert closure_of(snapshot) <= held
    assert BUILTIN.keys() <= held
