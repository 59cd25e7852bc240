from collections.abc import Callable

from dulwich.objects import Blob, ObjectID, Tree
from fresh_store import fresh_store
from hypothesis import given
from hypothesis import strategies as st
from store.story import CLOSURE, WORKFLOW, list_tree, signed

from uwf_git.store.nodes.tree import FILE_MODE
from uwf_git.store.objects.commit import CommitView
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.workflows import SourceFiles, add_version, build_tree, read_sources

HEAD = Blob.from_string(b"{}").id
NODES = Tree().id

PARTS = st.sampled_from(["a", "b", "é", "a b", "workflow.yaml", "nodes"])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map(lambda parts: "/".join(["x", *parts]) + ".md")


def view_of(tree: Tree) -> CommitView:
    return CommitView(Oid("0" * 40), (), tree.id, b"", b"", 0)


@given(st.binary(max_size=20), st.dictionaries(PATHS, st.binary(max_size=20), max_size=6))
def test_files_come_back_byte_for_byte_by_their_paths(
    workflow: bytes, included: dict[str, bytes]
) -> None:
    store = fresh_store()
    source = SourceFiles(workflow, included)
    tree, objects = build_tree(source, head=HEAD, nodes=NODES)
    store.objects.add_objects([(each, None) for each in [*objects, tree]])

    assert read_sources(store.objects, view_of(tree)) == source


def test_without_included_files_the_tree_has_three_entries() -> None:
    tree, objects = build_tree(SourceFiles(b"name: x"), head=HEAD, nodes=NODES)

    assert [entry.path for entry in tree.items()] == [b"head.json", b"nodes", b"workflow.yaml"]
    assert len(objects) == 1


def test_git_finds_each_file_where_the_workflow_file_includes_it(
    store: Store, clock: Callable[[], int]
) -> None:
    source = SourceFiles(b"x", {"prompts/a.md": b"1", "prompts/inner/b.md": b"2", "c.json": b"3"})
    version = add_version(
        store, None, added=("demo", WORKFLOW, CLOSURE), source=source, signing=signed(clock())
    )

    listed = [line.split()[3] for line in list_tree(store.objects, version.commit.tree)]
    assert [path for path in listed if not path.startswith("nodes/")] == [
        "c.json",
        "head.json",
        "prompts/a.md",
        "prompts/inner/b.md",
        "workflow.yaml",
    ]


def test_name_that_is_no_text_is_read_all_the_same() -> None:
    store = fresh_store()
    tree, objects = build_tree(SourceFiles(b"x"), head=HEAD, nodes=NODES)
    blob = Blob.from_string(b"odd")
    tree[b"\xff.md"] = (FILE_MODE, ObjectID(blob.id))
    store.objects.add_objects([(each, None) for each in [*objects, blob, tree]])

    assert read_sources(store.objects, view_of(tree)).included == {"\udcff.md": b"odd"}
