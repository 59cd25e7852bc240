"""The registry; what must hold on every kind of store is in test_contract.py."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import Blob, Tree
from fresh_store import fresh_store
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses
from store.story import CLOSURE, WORKFLOW, list_tree, put_raw, signed

from uwf_git.model.names import Oid
from uwf_git.store.lookup import NODES_REF, put_nodes
from uwf_git.store.objects.commit import BadMessage, CommitView, body_of, parse_trailers, subject_of
from uwf_git.store.store import Store
from uwf_git.store.workflows import (
    WORKFLOWS,
    SourceFiles,
    Version,
    add_version,
    build_tree,
    find_shipped,
    find_version,
    get_version_node,
    is_shipped_agent,
    list_names,
    list_shipped,
    no_such_workflow,
    read_sources,
    remove_version,
    restore_version,
    walk_versions,
)

SOURCE = b"name: demo\r\n# \xc3\xa9 and no line end"


def put(
    store: Store,
    clock: Callable[[], int],
    seen: Version | None = None,
    *,
    name: str = "demo",
    source: bytes = SOURCE,
) -> Version:
    return add_version(
        store,
        seen,
        added=(name, WORKFLOW, CLOSURE),
        source=SourceFiles(source),
        signing=signed(clock()),
    )


def test_a_version_holds_its_source_and_its_closure(store: Store, clock: Callable[[], int]) -> None:
    version = put(store, clock)
    assert read_sources(store.objects, version.commit).workflow == SOURCE
    assert get_version_node(store, version, WORKFLOW.hash) == WORKFLOW
    for node in CLOSURE:
        assert get_version_node(store, version, node.hash) == node
    lines = [line.split() for line in list_tree(store.objects, version.commit.tree)]
    blobs = {path: oid for _mode, _type, oid, path in lines}
    name = WORKFLOW.hash
    assert {path.partition("/")[0] for path in blobs} == {"workflow.yaml", "head.json", "nodes"}
    assert blobs["head.json"] == blobs[f"nodes/{name[0]}/{name[1]}/{name[2:]}.json"]


def test_a_version_says_what_was_put(store: Store, clock: Callable[[], int]) -> None:
    version = put(store, clock, name="löse-fall")
    message = version.commit.message
    assert subject_of(message) == f"löse-fall: put {WORKFLOW.hash}"
    assert parse_trailers(message) == {
        "Uwf-Event": "put",
        "Uwf-Workflow": WORKFLOW.hash,
        "Uwf-Workflow-Name": "löse-fall",
        "Uwf-Format": "2",
    }
    assert find_version(store, "löse-fall") == version


def test_a_removal_keeps_what_it_removes(store: Store, clock: Callable[[], int]) -> None:
    seen = put(store, clock, name="löse")

    removal = remove_version(store, seen, reason="no more\nof it", signing=signed(clock()))

    assert find_version(store, "löse") == removal
    assert (removal.event, removal.is_removed, seen.is_removed) == ("remove", True, False)
    assert (removal.workflow, removal.commit.tree) == (WORKFLOW.hash, seen.commit.tree)
    assert removal.commit.parents == (seen.commit.oid,)
    message = removal.commit.message
    assert subject_of(message) == f"löse: removed {WORKFLOW.hash}"
    assert body_of(message) == "no more\nof it"
    assert parse_trailers(message)["Uwf-Event"] == "remove"
    assert list_names(store) == ["löse"]


def test_a_rollback_is_an_earlier_version_again(store: Store, clock: Callable[[], int]) -> None:
    one = put(store, clock)
    two = put(store, clock, one, source=b"two")

    back = restore_version(store, two, one, reason="", signing=signed(clock()))

    assert (back.event, back.commit.tree) == ("rollback", one.commit.tree)
    assert back.commit.parents == (two.commit.oid,)
    assert read_sources(store.objects, back.commit).workflow == SOURCE
    assert subject_of(back.commit.message) == f"demo: rollback to {WORKFLOW.hash}"
    assert list(walk_versions(store, back)) == [back, two, one]


def test_a_removal_or_a_rollback_of_what_is_not_the_newest_is_refused(
    store: Store, clock: Callable[[], int]
) -> None:
    one = put(store, clock)
    two = put(store, clock, one)

    with refuses("workflow-moved"):
        remove_version(store, one, reason="", signing=signed(clock()))
    with refuses("workflow-moved"):
        restore_version(store, one, one, reason="", signing=signed(clock()))
    assert find_version(store, "demo") == two


def test_a_commit_that_names_no_workflow_is_reported(
    store: Store, clock: Callable[[], int]
) -> None:
    put_nodes(store, [], signed(clock()))
    commit = store.refs.find(NODES_REF)
    assert commit is not None
    store.refs.create(f"{WORKFLOWS}nodes", commit)
    with refuses("damaged-commit", match=f"{commit} names no workflow"):
        find_version(store, "nodes")


def test_a_commit_that_uwf_did_not_write_is_reported(store: Store) -> None:
    text = f"tree {'4b825dc642cb6eb9a060e54bf8d69288fbee4904'}\nauthor A <a> 1 +0000\n"
    text += "committer A <a> 1 +0000\n\na subject\n"
    commit = Oid(put_raw(store, "commit", text.encode()).decode())
    store.refs.create(f"{WORKFLOWS}foreign", commit)
    with pytest.raises(BadMessage, match=f"commit {commit} has no trailers"):
        find_version(store, "foreign")


def test_a_refusal_says_what_may_have_been_meant() -> None:
    error = no_such_workflow("solv-issue", ["solve-issue", "solved"])
    assert error.message == "there is no workflow solv-issue"
    assert str(error.hint).startswith("did you mean solve-issue or solved? ")
    assert len(no_such_workflow("x" * 1000, []).message) < 200


ROOT = Path(__file__).parents[3]


def test_every_shipped_file_is_in_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["uwf_git"]
    packaged = {path for pattern in patterns for path in (ROOT / "uwf_git").glob(pattern)}
    assert {Path(file.path) for file in list_shipped()} <= packaged
    assert {"check-repo", "develop"} <= {file.name for file in list_shipped()}


def test_folder_of_the_checkout_is_the_one_of_the_package() -> None:
    assert [str(path.resolve()) for path in sorted((ROOT / "workflows").glob("*"))] == [
        file.path for file in list_shipped()
    ]


@pytest.mark.parametrize("name", ["", "nope", "../workflows/develop", "check-repo.yaml", "*"])
def test_other_names_are_not_shipped(name: str) -> None:
    assert find_shipped(name) is None
    assert not is_shipped_agent(name, {"command": "x"})


def test_only_the_agents_of_that_file_are_shipped_ones() -> None:
    file = find_shipped("check-repo")
    assert file is not None
    source = Path(file.path).read_text()
    block = source.partition("  leftovers: |-\n")[2].partition("\n\n  verdict:")[0]
    command = "\n".join(line[4:] for line in block.split("\n"))
    assert is_shipped_agent("check-repo", {"command": command})
    assert not is_shipped_agent("develop", {"command": command})
    assert not is_shipped_agent("check-repo", {"command": command + " "})
    assert not is_shipped_agent("check-repo", {"command": command, "env": {"PATH": "evil"}})


HEAD = Blob.from_string(b"{}").id
NODES = Tree().id

PARTS = st.sampled_from(["a", "b", "é", "a b", "workflow.yaml", "nodes"])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map(lambda parts: "/".join(["x", *parts]) + ".md")


@given(st.binary(max_size=20), st.dictionaries(PATHS, st.binary(max_size=20), max_size=6))
def test_files_come_back_byte_for_byte_by_their_paths(
    workflow: bytes, included: dict[str, bytes]
) -> None:
    store = fresh_store()
    source = SourceFiles(workflow, included)
    tree, objects = build_tree(source, head=HEAD, nodes=NODES)
    store.objects.add_objects([(each, None) for each in [*objects, tree]])

    view = CommitView(Oid("0" * 40), (), tree.id, b"", b"", 0)
    assert read_sources(store.objects, view) == source


def test_without_included_files_the_tree_has_three_entries() -> None:
    tree, objects = build_tree(SourceFiles(b"name: x"), head=HEAD, nodes=NODES)

    assert [entry.path for entry in tree.items()] == [b"head.json", b"nodes", b"workflow.yaml"]
    assert len(objects) == 1
