import pytest
from cas_nodes import NOWHERE, add_misnamed, add_notes, add_unchecked, put_person
from commands.world import DEMO, World
from fresh_store import fresh_store
from refusing import refuses

from uwf_git.commands.cas.read import get_node
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import META_NODE, TEXT
from uwf_git.model.names import NotANodeHash
from uwf_git.store.lookup.lookup import NoSuchNode


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


def test_builtin_node_is_there_in_every_store() -> None:
    assert get_node(fresh_store(), META_NODE.hash) == (META_NODE, "JSON Schema")


def test_node_whose_type_is_missing_can_still_be_read() -> None:
    store = fresh_store()
    name = add_unchecked(store, NOWHERE, [1])

    assert get_node(store, name).node.payload == [1]
    assert get_node(store, name).type_name is None


@pytest.mark.parametrize(
    ("text", "error"),
    [("", NotANodeHash), ("u", NotANodeHash), (NOWHERE, NoSuchNode), ("8FWK", NoSuchNode)],
)
def test_word_that_means_no_node_is_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        get_node(fresh_store(), text)


def test_word_that_means_several_is_refused_with_their_names() -> None:
    store = fresh_store()
    names = add_notes(store, 40)
    first = next(name[0] for name in names if sum(each[0] == name[0] for each in names) > 1)

    with refuses("ambiguous-node") as caught:
        get_node(store, first)
    assert set(caught.value.facts["matches"]) >= {name for name in names if name[0] == first}


def test_node_that_is_another_than_its_name_says_is_never_given() -> None:
    store = fresh_store()
    add_misnamed(store, NOWHERE, TEXT, "wrong")

    with pytest.raises(StoreDamaged, match="holds other content"):
        get_node(store, NOWHERE)


def test_node_of_an_old_version_of_a_workflow_is_found(world: World) -> None:
    old = world.put().workflow
    new = world.put(DEMO.replace("Writes.", "Writes well.")).workflow

    assert [get_node(world.store, name).type_name for name in (old, new)] == ["Workflow"] * 2
