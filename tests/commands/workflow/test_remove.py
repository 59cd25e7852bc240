import pytest
from commands.world import DEMO, World

from uwf_git.commands.verify.verify import verify
from uwf_git.commands.workflow.find import find_workflow, list_workflows
from uwf_git.commands.workflow.history import remove_workflow
from uwf_git.store.objects.commit import body_of
from uwf_git.store.store import Store
from uwf_git.store.workflows import WorkflowMoved, find_version, list_versions


def test_removal_is_a_commit_with_its_reason_and_nothing_is_lost(world: World) -> None:
    put = world.put()

    removed = remove_workflow(world.store, world.caller, "demo", reason="It was bad.")

    removal, version = list_versions(world.store)
    assert (removal.commit.oid, version.commit.oid) == (removed.version, put.version)
    assert body_of(removal.commit.message) == "It was bad."
    assert find_workflow(world.store, put.workflow).workflow.name == "demo"
    assert verify(world.store, []).troubles == ()


def test_threads_go_on(world: World) -> None:
    thread = world.begun()

    remove_workflow(world.store, world.caller, "demo")

    assert world.step(thread).role == "writer"


def test_putting_it_again_works_though_nothing_changed(world: World) -> None:
    first = world.put()
    remove_workflow(world.store, world.caller, "demo")

    again = world.put()

    assert (again.changed, again.workflow) == (True, first.workflow)
    assert len(list(list_versions(world.store))) == 3
    assert [row["name"] for row in list_workflows(world.store)] == ["demo"]


def test_version_that_came_in_between_is_not_removed_unseen(world: World) -> None:
    world.put()
    changed = DEMO.replace("Writes.", "Writes well.")

    def now_ms() -> int:
        # The clock is read after the registry.
        world.put(changed)
        return 1_760_000_000_000

    with pytest.raises(WorkflowMoved):
        remove_workflow(world.store, world.caller._replace(now_ms=now_ms), "demo")
    assert not_removed(world.store)


def not_removed(store: Store) -> bool:
    version = find_version(store, "demo")
    return version is not None and not version.is_removed
