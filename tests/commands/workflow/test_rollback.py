import pytest
from commands.forging import forge, holds, place
from commands.world import DEMO, World
from refusing import refuses

from uwf_git.commands.verify.verify import verify
from uwf_git.commands.workflow.build import PutWorkflow
from uwf_git.commands.workflow.find import find_workflow
from uwf_git.commands.workflow.history import RolledBack, remove_workflow, rollback_workflow
from uwf_git.store.nodes.tree import MissingNode
from uwf_git.store.objects.commit import body_of
from uwf_git.store.trust import list_trusted, untrust_agents
from uwf_git.store.workflows import find_version, list_versions, read_sources

BETTER = DEMO.replace("Writes.", "Writes well.")


@pytest.fixture
def two(world: World) -> tuple[PutWorkflow, PutWorkflow]:
    """Put two versions."""
    return world.put(), world.put(BETTER)


def back(world: World, text: str | None = None, **said: str) -> RolledBack:
    return rollback_workflow(world.store, world.caller, "demo", text=text, **said)


def test_version_before_the_newest_comes_back_as_a_new_commit(
    world: World, two: tuple[PutWorkflow, PutWorkflow]
) -> None:
    first, second = two

    done = back(world, reason="It was too good.")

    assert done[:2] == ("demo", first.workflow)
    assert (done.restored, done.replaced) == (first.version, second.workflow)
    newest, *before = list_versions(world.store)
    assert newest.commit.oid == done.version
    assert [each.commit.oid for each in before] == [second.version, first.version]
    assert read_sources(world.store.objects, newest.commit).workflow == DEMO.encode()
    assert body_of(newest.commit.message) == "It was too good."
    assert find_workflow(world.store, "demo").workflow.hash == first.workflow
    assert verify(world.store, []).troubles == ()


def test_removed_workflow_is_restored(world: World, two: tuple[PutWorkflow, PutWorkflow]) -> None:
    remove_workflow(world.store, world.caller, "demo")

    done = back(world)

    assert (done.workflow, done.replaced) == (two[1].workflow, None)
    assert find_workflow(world.store, "demo").workflow.hash == two[1].workflow
    # The removal is no version: the version before the present one is the first.
    assert back(world).workflow == two[0].workflow


def test_newest_version_is_not_restored(world: World, two: tuple[PutWorkflow, PutWorkflow]) -> None:
    with refuses("already-there", match=f"workflow demo is at {two[1].workflow} already"):
        back(world, two[1].workflow)
    assert len(list(list_versions(world.store))) == 2


def test_version_that_is_not_whole_is_not_brought_back(
    world: World, two: tuple[PutWorkflow, PutWorkflow]
) -> None:
    role = find_workflow(world.store, two[0].workflow).workflow.roles["writer"]
    _first, newest = forge(
        world.store, "refs/workflows/demo", {0: holds(world.store, place(role), None)}
    )

    with pytest.raises(MissingNode):
        back(world)
    version = find_version(world.store, "demo")
    assert version is not None
    assert version.commit.oid == newest


def test_agents_of_an_older_version_are_not_trusted_by_it(world: World) -> None:
    world.put(DEMO + "defaultAgent: theirs\n")
    world.put(DEMO)
    untrust_agents(world.store, command="theirs")

    back(world)

    assert list_trusted(world.store) == []
