from collections.abc import Callable
from pathlib import Path

import pytest
from cas_nodes import (
    ENDLESS,
    NOWHERE,
    PERSON,
    SIGNING,
    TWINS,
    add_misnamed,
    add_unchecked,
    hand_over,
    keep_alone,
    new_caller,
    put_person,
)
from store.small_packs import loose_file, loosen

from uwf_git.commands.cas import put_payload, put_schema, verify_nodes
from uwf_git.model.builtin import META, TEXT
from uwf_git.model.names import NodeHash, Oid
from uwf_git.model.node import Node, build_node
from uwf_git.store.lookup import NODES_REF
from uwf_git.store.nodes import encode_node
from uwf_git.store.objects.commit import find_entry, read_commit
from uwf_git.store.store import Store, create_store, open_store
from uwf_git.store.workflows import SourceFiles, add_version

THREAD = "refs/threads/01J00000000000000000000001"


def told(store: Store, *texts: str) -> list[str]:
    return [each.message for each in verify_nodes(store, list(texts)).findings]


@pytest.fixture
def note(store: Store) -> NodeHash:
    """Return a text that is kept."""
    return put_payload(store, new_caller(), "Text", "hello").hash


def test_nodes_that_are_whole_have_no_findings(store: Store, note: NodeHash) -> None:
    ada = put_person(store, name="Ada", note={"$ref": note})

    assert verify_nodes(store, [ada[:6].lower(), note, ada]) == ((ada, note), ())


def test_every_damaged_copy_is_reported_with_its_ref(store: Store, note: NodeHash) -> None:
    hand_over(store, "refs/archive/01J00000000000000000000002")
    add_misnamed(store, note, TEXT, "wrong")
    hand_over(store, THREAD)
    add_misnamed(store, note, TEXT, "worse")

    findings = verify_nodes(store, [note]).findings

    assert [(each.node, each.ref) for each in findings] == [(note, NODES_REF), (note, THREAD)]
    assert all("holds other content" in each.message for each in findings)


def test_missing_node_is_a_finding_among_others(store: Store, note: NodeHash) -> None:
    assert told(store, NOWHERE, note) == [f"there is no node {NOWHERE} in this store"]


def test_two_payloads_of_one_name_are_reported(store: Store) -> None:
    note = put_payload(store, new_caller(), "Text", TWINS[0]).hash
    keep_alone(store, THREAD, build_node(TEXT, TWINS[1], timestamp=0))

    (finding,) = verify_nodes(store, [note]).findings
    assert finding.ref == THREAD
    assert finding.message == f"it has two payloads: this one, and another in {NODES_REF}"


def test_node_in_other_bytes_is_reported(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    node = build_node(META, PERSON, timestamp=0)
    suffix, content = encode_node(node)
    with monkeypatch.context() as patched:
        patched.setattr("uwf_git.store.nodes.encode_node", lambda _: (suffix, content + b" "))
        keep_alone(store, THREAD, node)

    assert told(store, node.hash) == [f"node {node.hash} is not written as uwf writes it"]


def test_damaged_copy_of_a_builtin_node_is_reported(store: Store) -> None:
    keep_alone(store, THREAD, Node(TEXT, META, {"type": "number"}, 0))

    (finding,) = verify_nodes(store, [TEXT]).findings
    assert (finding.node, finding.ref) == (TEXT, THREAD)


def test_reference_to_a_missing_node_is_reported(store: Store) -> None:
    schema = put_schema(store, new_caller(), PERSON).hash
    ada = add_unchecked(store, schema, {"name": "Ada", "friend": NOWHERE})
    lone = add_unchecked(store, NOWHERE, {})

    assert told(store, ada) == [f"it refers to {NOWHERE}, which is not in this store"]
    assert told(store, lone) == [f"its type is {NOWHERE}, which is not in this store"]


def test_reference_to_a_damaged_node_is_reported(store: Store) -> None:
    schema = put_schema(store, new_caller(), PERSON).hash
    add_misnamed(store, NOWHERE, TEXT, "wrong")
    ada = add_unchecked(store, schema, {"name": "Ada", "friend": NOWHERE})

    assert told(store, ada)[0].startswith(f"it refers to {NOWHERE}, but node {NOWHERE} holds")


def test_damaged_type_is_reported_once(store: Store) -> None:
    add_misnamed(store, NOWHERE, META, {"title": "Wrong"})
    (message,) = told(store, add_unchecked(store, NOWHERE, {}))
    assert message.startswith(f"it cannot be checked against its type: node {NOWHERE} holds other")


def test_type_that_is_no_schema_is_reported(store: Store, note: NodeHash) -> None:
    assert told(store, add_unchecked(store, note, {})) == [f"its type {note} is not a schema"]


def test_schema_that_cannot_be_evaluated_is_reported(store: Store) -> None:
    schema = put_schema(store, new_caller(), ENDLESS).hash
    (message,) = told(store, add_unchecked(store, schema, "a" * 100 + "b"))
    assert message.startswith("it cannot be checked against its type: the check against the schema")


def test_unreadable_git_object_is_reported(tmp_path: Path, git: Callable[..., str]) -> None:
    path = tmp_path / "s.git"
    store = create_store(str(path))
    note = put_payload(store, new_caller(), "Text", "hello").hash
    loosen(store)
    place = f"{NODES_REF}:nodes/{note[0]}/{note[1]}/{note[2:]}.md"
    blob = loose_file(store, git("rev-parse", place, cwd=path).strip())
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes()[:10])

    (finding,) = verify_nodes(open_store(str(path)), [note]).findings
    assert finding.ref == NODES_REF
    assert "cannot be read" in finding.message


def test_damaged_folder_of_another_thread_is_no_finding(tmp_path: Path) -> None:
    store = create_store(str(tmp_path / "s.git"))
    note = put_payload(store, new_caller(), "Text", "hello").hash
    hand_over(store, "refs/archive/01J00000000000000000000002")
    keep_alone(store, THREAD, build_node(TEXT, "other", timestamp=0))
    commit = read_commit(store.objects, store.refs.find(THREAD) or Oid(""))
    oid = (find_entry(store.objects, commit, "nodes") or b"").decode()
    loosen(store)
    tree = loose_file(store, oid)
    tree.chmod(0o644)
    tree.write_bytes(b"")

    assert told(open_store(store.path), note) == []


def test_file_of_several_workflow_versions_is_reported_once(store: Store) -> None:
    wrong = Node(NOWHERE, TEXT, "wrong", 0)
    version = None
    for number in range(3):
        added = ("demo", build_node(TEXT, f"version {number}", timestamp=0), [wrong])
        version = add_version(store, version, added=added, source=SourceFiles(b""), signing=SIGNING)

    (finding,) = verify_nodes(store, [NOWHERE]).findings
    assert finding.ref == "refs/workflows/demo"
