"""The registry: workflow names and their versions.

Owns: the refs below refs/workflows/, one commit a version, newest at the tip.
Knows nothing of: YAML, what a workflow means.
Always true: a version is never rewritten; the tree of each holds the closure of its Workflow
node beside the source, byte for byte.
Format: FORMAT.md, "The tree of a workflow commit".
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dulwich.objects import Blob, ObjectID, Tree

from uwf_git.errors import Conflict, Refused
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash, is_node_hash
from uwf_git.model.transition_record import FORMAT
from uwf_git.store.commit import (
    CommitDraft,
    CommitView,
    DamagedCommit,
    Signing,
    find_entry,
    read_commit,
    read_file,
    write_commit,
)
from uwf_git.store.message import BadMessage, build_message, parse_trailers
from uwf_git.store.node_tree import FILE_MODE, TREE_MODE, MissingNode, add_nodes, find_node
from uwf_git.store.refs import Oid
from uwf_git.store.store import Store

WORKFLOWS = "refs/workflows/"

_SOURCE_FILE = "workflow.yaml"
_HEAD_FILE = "head.json"
_NODES = "nodes"


class NoSuchWorkflow(Refused):
    """No workflow of this store is meant."""

    code = "no-such-workflow"

    def __init__(self, text: str, near: list[str]) -> None:
        meant = f"did you mean {' or '.join(near)}? " if near else ""
        shown = text[:100] if text and text.isprintable() else repr(text[:100])
        super().__init__(
            f"there is no workflow {shown}",
            hint=meant + "`uwf workflow list` shows yours; `uwf workflow put FILE` adds one",
            workflow=text[:100],
        )


class WorkflowMoved(Conflict):
    """Somebody else put a version in the meantime."""

    code = "workflow-moved"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"workflow {name} got another version while this was under way",
            hint="put it again",
            workflow=name,
        )


class Version(NamedTuple):
    """One version of a workflow."""

    name: str
    commit: CommitView
    workflow: NodeHash
    """Its Workflow node."""


def list_names(store: Store) -> list[str]:
    """List the names of the registry, sorted."""
    return store.refs.names(WORKFLOWS)


def find_version(store: Store, name: str) -> Version | None:
    """Give the newest version of the workflow *name*, or None.

    Raises:
        DamagedCommit, BadMessage: its commit is none of ours.
    """
    oid = store.refs.find(WORKFLOWS + name)
    return None if oid is None else _read_version(store, name, oid)


def _read_version(store: Store, name: str, oid: Oid) -> Version:
    commit = read_commit(store.objects, oid)
    try:
        workflow = parse_trailers(commit.message).get("Uwf-Workflow", "")
    except BadMessage as error:
        raise error.of_commit(oid) from error
    if not is_node_hash(workflow):
        raise DamagedCommit(oid, "names no workflow")
    return Version(name, commit, NodeHash(workflow))


def list_versions(store: Store) -> Iterator[Version]:
    """Give every version of every workflow: by name, and the newest first."""
    for name in list_names(store):
        version = find_version(store, name)
        while version is not None:
            yield version
            parents = version.commit.parents
            version = _read_version(store, name, parents[0]) if parents else None


def get_version_node(store: Store, version: Version, name: NodeHash) -> Node:
    """Give the node *name* from the closure of a version.

    Raises:
        MissingNode, DamagedNode: it is not there, or not what it says.
    """
    nodes = find_entry(store.objects, version.commit, _NODES)
    node = find_node(store.objects, nodes, name)
    if node is None:
        raise MissingNode(name)
    return node


def read_source(store: Store, version: Version) -> bytes:
    """Give the file that a version was put from, byte for byte."""
    return read_file(store.objects, version.commit, _SOURCE_FILE)


def add_version(
    store: Store,
    seen: Version | None,
    *,
    added: tuple[str, Node, Iterable[Node]],
    source: bytes,
    signing: Signing,
) -> Version:
    """Add a version after the one that was *seen*; *added* is name, Workflow node, closure.

    Raises:
        WorkflowMoved: another version came in between.
        OSError: the machine would not let it be written.
    """
    name, workflow, closure = added
    growth = add_nodes(store.objects, None, [workflow, *closure])
    file = Blob.from_string(source)
    trailers = [
        ("Uwf-Event", "put"),
        ("Uwf-Workflow", workflow.hash),
        ("Uwf-Workflow-Name", name),
        ("Uwf-Format", str(FORMAT)),
    ]
    draft = CommitDraft(
        tree=_tree(file.id, growth.blobs[workflow.hash], growth.nodes),
        parents=() if seen is None else (seen.commit,),
        message=build_message(name, f"put {workflow.hash}", trailers=trailers),
        objects=[*growth.objects, file],
    )
    oid = write_commit(store.objects, draft, signing)
    _move(store, name, seen, oid)
    return Version(name, read_commit(store.objects, oid), workflow.hash)


def _tree(source: ObjectID, head: ObjectID, nodes: ObjectID) -> Tree:
    tree = Tree()
    tree[_SOURCE_FILE.encode()] = (FILE_MODE, source)
    tree[_HEAD_FILE.encode()] = (FILE_MODE, head)
    tree[_NODES.encode()] = (TREE_MODE, nodes)
    return tree


def _move(store: Store, name: str, seen: Version | None, to: Oid) -> None:
    ref = WORKFLOWS + name
    if seen is None:
        moved = store.refs.create(ref, to)
    else:
        moved = store.refs.advance(ref, seen=seen.commit.oid, to=to)
    if not moved:
        raise WorkflowMoved(name)
