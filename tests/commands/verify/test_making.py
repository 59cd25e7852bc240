"""What a commit is made from, where that is not what it should be."""

import pytest
from commands.verify.test_each_event import Raw, check, list_recorded, with_tree
from commands.verify.test_each_event import store as store  # noqa: PLC0414 (a fixture)
from dulwich.objects import Blob, Commit, ObjectID, Tree

from uwf_git.commands.verify.history import Location
from uwf_git.commands.verify.making import CannotBe, Making
from uwf_git.commands.verify.nodes import TreeChecks
from uwf_git.model.names import NodeHash
from uwf_git.store.store import Store
from uwf_git.store.threads.snapshot import read_snapshot


@pytest.mark.parametrize(
    "content", [b"no node\n", b"---\ntype: 7T9THEK9TEVCY\ntimestamp: 0\n---\n"]
)
def test_start_that_is_no_start_is_told(store: Store, content: bytes) -> None:
    made = list_recorded(store.path)["verdict"]
    commit = store.objects[ObjectID(made.oid.encode())]
    assert isinstance(commit, Commit)
    tree = store.objects[commit.tree]
    assert isinstance(tree, Tree)
    blob, held = Raw(Blob, content), tree.as_raw_string()
    place = held.index(b"start.json\0") + len(b"start.json\0")
    held = held[:place] + bytes.fromhex(blob.id.decode()) + held[place + 20 :]
    objects, tip = with_tree(commit.as_raw_string(), tree, Raw(Tree, held))

    found = [each.message for each in check(store, made, [*objects, blob], tip)]

    assert found[0] == "start.json is another than in the commit before"


@pytest.mark.parametrize(
    ("event", "cause", "told"),
    [
        ("step", None, "step has no Uwf-Cause"),
        ("step", "0000000000000", "which is not in the commit"),
        ("pause", "itself", "which is no Signal"),
        ("end", "itself", "end has an Uwf-Cause"),
    ],
)
def test_node_that_the_event_cannot_be_about_is_told(
    store: Store, event: str, cause: str | None, told: str
) -> None:
    view, record = read_snapshot(store, list_recorded(store.path)["step"].oid)[1:]
    name = record.cause if cause == "itself" else cause
    record = record._replace(event=event, cause=None if name is None else NodeHash(name))  # type: ignore[arg-type]  # a word
    trees = TreeChecks(store)
    nodes = trees.folders.get(bytes.fromhex(view.tree.decode()))[b"nodes"][1]
    making = Making(trees, Location("", view.oid, nodes), view, record, b"", None)

    with pytest.raises(CannotBe, match=told):
        making.make()
