import pytest
from commands.world import DEMO, World
from refusing import refuses

from uwf_git.commands.workflow.find import WorkflowRemoved
from uwf_git.commands.workflow.history import (
    choose_version,
    get_newest,
    get_present,
    remove_workflow,
)
from uwf_git.store.workflows import Version, list_versions


@pytest.fixture
def versions(world: World) -> list[Version]:
    """Put three versions: the second one equals the first."""
    world.put()
    world.put("# a comment\n" + DEMO)
    world.put(DEMO.replace("Writes.", "Writes well."))
    return list(list_versions(world.store))


def test_removed_workflow_is_newest_but_not_present(world: World, versions: list[Version]) -> None:
    remove_workflow(world.store, world.caller, "demo")

    assert get_newest(world.store, "demo").is_removed
    with pytest.raises(WorkflowRemoved):
        get_present(world.store, "demo")


def test_beginning_that_several_have_is_refused_with_all_of_them(world: World) -> None:
    for number in range(17):
        world.put(DEMO.replace("Writes.", f"Writes {number}."))
    versions = list(list_versions(world.store))
    names = [version.workflow for version in versions]
    prefix = next(name[0] for name in names if sum(other[0] == name[0] for other in names) > 1)

    with refuses("ambiguous-version") as caught:
        choose_version("demo", versions, prefix)

    assert caught.value.facts["matches"] == sorted(n for n in names if n[0] == prefix)
