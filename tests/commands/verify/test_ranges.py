"""`uwf verify --files` checks the commits of files that steps name, where the project is."""

import os
from pathlib import Path

import pytest
from cas_nodes import put_person
from commands.forging import commits_of, tip_of
from commands.step.test_turn_files import edits
from commands.worktree.project import Git, begin_project
from commands.world import World
from refusing import refuses
from store.loose import lose

from uwf_git.commands.verify.verify import Target, check_ranges, find_targets
from uwf_git.model.names import ThreadId
from uwf_git.store.lookup import NODES_REF
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, NoSuchThread
from uwf_git.store.threads.history import KEPT, preserve_commit
from uwf_git.store.workflows import WORKFLOWS


@pytest.fixture
def thread(world: World, git: Git) -> ThreadId:
    begin_project(world, git)
    thread = world.begun()
    world.step(thread, edits(lambda place: (place / "new").write_text("one")))
    world.step(thread, edits(lambda place: (place / "new").write_text("two")))
    return thread


def found(world: World) -> list[tuple[bool, str]]:
    checked = check_ranges(world.store, find_targets(world.store, []))
    return [(is_lost, finding.message) for is_lost, finding in checked]


def test_a_lost_commit_and_one_of_another_turn_are_problems(
    world: World, git: Git, thread: ThreadId
) -> None:
    ref = f"refs/uwf/work/{thread}"
    whole = git("rev-parse", ref, cwd=world.place).strip()
    git("update-ref", ref, f"{ref}^", cwd=world.place)
    [(is_lost, message)] = found(world)
    assert is_lost
    assert "not both there" in message
    # The same tree, said to be of another turn.
    words = ("commit-tree", "-p", f"{ref}", "-m", "forged", f"{whole}^{{tree}}")
    git("update-ref", ref, git(*words, cwd=world.place).strip(), cwd=world.place)
    assert [is_lost for is_lost, _ in found(world)] == [True]


def test_a_project_that_is_not_here_is_a_note(world: World, thread: ThreadId) -> None:
    os.rename(world.place / ".git", Path(world.place, "gone"))
    [(is_lost, message)] = found(world)
    assert not is_lost
    assert "not here" in message


def test_a_history_that_breaks_off_is_checked_as_far_as_it_is_there(
    world: World, thread: ThreadId
) -> None:
    begun, _one, _two = commits_of(world.store, tip_of(world.store, ACTIVE + thread))
    lose(world.store, begun.id)
    assert found(world) == []


@pytest.fixture
def threads(world: World) -> list[ThreadId]:
    """Return an archived thread and an active one, which has a kept commit; and more beside."""
    put_person(world.store, name="Ada")
    ended, going = world.begun(), world.start()
    world.kill(ended)
    preserve_commit(world.store, going, tip_of(world.store, ACTIVE + going))
    return [ended, going]


def refs_of(world: World, *texts: str) -> list[str]:
    targets = find_targets(world.store, list(texts))
    assert all(target.tip == tip_of(world.store, target.ref) for target in targets)
    return [target.ref for target in targets]


def test_each_way_to_name_something(world: World, threads: list[ThreadId]) -> None:
    ended, going = threads
    kept = f"{KEPT}{going}/{tip_of(world.store, ACTIVE + going)}"

    assert refs_of(world, ended) == [ARCHIVE + ended]
    assert refs_of(world, going.lower()) == [ACTIVE + going, kept]
    assert refs_of(world, "demo") == [f"{WORKFLOWS}demo"]
    for ref in (f"{WORKFLOWS}demo", NODES_REF, ARCHIVE + ended, ACTIVE + going, kept):
        assert refs_of(world, ref) == [ref]
    assert refs_of(world, "demo", "demo", going, ACTIVE + going) == [
        f"{WORKFLOWS}demo",
        ACTIVE + going,
        kept,
    ]


def test_missing_or_ambiguous_thread_is_refused(world: World, threads: list[ThreadId]) -> None:
    with pytest.raises(NoSuchThread):
        find_targets(world.store, ["7"])
    with refuses("ambiguous-thread"):
        find_targets(world.store, ["01J"])


def test_ref_that_holds_no_object_id_is_a_target_without_one(
    world: World, threads: list[ThreadId]
) -> None:
    Path(world.store.path, WORKFLOWS, "demo").write_text("junk\n", encoding="utf-8")

    target = Target("workflow", f"{WORKFLOWS}demo", "demo", None)
    assert find_targets(world.store, ["demo"]) == [target]
    assert target in find_targets(world.store, [])
