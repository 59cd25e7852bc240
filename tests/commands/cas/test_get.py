import pytest
from cas_nodes import NOWHERE, add_misnamed, put_person
from commands.world import DEMO, World
from fresh_store import fresh_store

from uwf_git.commands.cas import get_node
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import TEXT


def test_node_is_found_by_any_unique_beginning_in_any_case() -> None:
    store = fresh_store()
    ada = put_person(store, name="Ada")

    for text in (ada, ada.lower(), ada[:5], ada[:5].lower()):
        found = get_node(store, text)
        assert (found.node.hash, found.node.payload, found.type_name) == (
            ada,
            {"name": "Ada"},
            "Person",
        )


def test_node_that_is_another_than_its_name_says_is_never_given() -> None:
    store = fresh_store()
    add_misnamed(store, NOWHERE, TEXT, "wrong")

    with pytest.raises(StoreDamaged, match="holds other content"):
        get_node(store, NOWHERE)


def test_node_of_an_old_version_of_a_workflow_is_found(world: World) -> None:
    old = world.put().workflow
    new = world.put(DEMO.replace("Writes.", "Writes well.")).workflow

    assert [get_node(world.store, name).type_name for name in (old, new)] == ["Workflow"] * 2
