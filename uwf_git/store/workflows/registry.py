"""The workflow registry: one ref a name below refs/workflows/, one commit a version.

A removal and a rollback are new commits; the versions that they undo stay readable.
Format: FORMAT.md, "The tree of a workflow commit".
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dulwich.objects import Tree

from uwf_git.debug_log import debug
from uwf_git.errors import Conflict, Refused
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash, is_node_hash
from uwf_git.model.transition_record import FORMAT
from uwf_git.store.nodes.tree import NODES, MissingNode, add_nodes, find_node
from uwf_git.store.objects.commit import (
    CommitDraft,
    CommitView,
    Signing,
    damaged_commit,
    find_entry,
    read_commit,
    write_commit,
)
from uwf_git.store.objects.message import BadMessage, build_message, parse_trailers
from uwf_git.store.objects.objects import get_tree
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.workflows.tree import SourceFiles, build_tree

WORKFLOWS = "refs/workflows/"

PUT, ROLLBACK, REMOVE = "put", "rollback", "remove"


def no_such_workflow(text: str, near: list[str]) -> Refused:
    """Say that the store has no workflow of that name."""
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    shown = text[:100] if text and text.isprintable() else repr(text[:100])
    return Refused(
        f"there is no workflow {shown}",
        code="no-such-workflow",
        hint=meant + "`uwf workflow list` shows yours; `uwf workflow put FILE` adds one",
        workflow=text[:100],
    )


class WorkflowMoved(Conflict):
    """Another process added a version meanwhile."""

    code = "workflow-moved"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"workflow {name} got another version meanwhile",
            hint="see it with `uwf workflow history`, then try again",
            workflow=name,
        )


class Version(NamedTuple):
    """One version of a workflow."""

    name: str
    commit: CommitView
    workflow: NodeHash
    """Its Workflow node; for a removal that of the removed version."""

    event: str = PUT
    """``put``, ``rollback`` or ``remove``."""

    @property
    def is_removed(self) -> bool:
        """Check whether this version removes the workflow."""
        return self.event == REMOVE


def list_names(store: Store) -> list[str]:
    """List the names of the registry, sorted, removed ones included."""
    return store.refs.names(WORKFLOWS)


def find_version(store: Store, name: str) -> Version | None:
    """Return the newest version of the workflow *name*, or None.

    Raises:
        StoreDamaged, BadMessage: its commit is damaged.
    """
    oid = store.refs.find(WORKFLOWS + name)
    return None if oid is None else _read_version(store, name, oid)


def _read_version(store: Store, name: str, oid: Oid) -> Version:
    commit = read_commit(store.objects, oid)
    try:
        trailers = parse_trailers(commit.message)
    except BadMessage as error:
        raise error.of_commit(oid) from error
    workflow = trailers.get("Uwf-Workflow", "")
    if not is_node_hash(workflow):
        raise damaged_commit(oid, "names no workflow")
    return Version(name, commit, NodeHash(workflow), trailers.get("Uwf-Event", PUT))


def list_versions(store: Store) -> Iterator[Version]:
    """Yield every version of every workflow, by name, the newest first."""
    for name in list_names(store):
        yield from walk_versions(store, find_version(store, name))


def walk_versions(store: Store, newest: Version | None) -> Iterator[Version]:
    """Yield *newest* and the versions before it, down to the first.

    Raises:
        StoreDamaged, BadMessage: one is damaged; those after it were yielded.
    """
    version = newest
    while version is not None:
        yield version
        parents = version.commit.parents
        version = _read_version(store, version.name, parents[0]) if parents else None


def get_version_node(store: Store, version: Version, name: NodeHash) -> Node:
    """Return the node *name* from the closure of a version.

    Raises:
        MissingNode, DamagedNode: it is missing or damaged.
    """
    nodes = find_entry(store.objects, version.commit, NODES)
    node = find_node(store.objects, nodes, name)
    if node is None:
        raise MissingNode(name)
    return node


def add_version(
    store: Store,
    seen: Version | None,
    *,
    added: tuple[str, Node, Iterable[Node]],
    source: SourceFiles,
    signing: Signing,
) -> Version:
    """Add a version after the version *seen*; *added* is name, Workflow node, closure.

    Raises:
        WorkflowMoved: another version was added meanwhile.
    """
    name, workflow, closure = added
    growth = add_nodes(store.objects, None, [workflow, *closure])
    tree, files = build_tree(source, head=growth.blobs[workflow.hash], nodes=growth.nodes)
    draft = CommitDraft(
        tree=tree,
        parents=() if seen is None else (seen.commit,),
        message=build_version_message(name, PUT, workflow.hash),
        objects=[*growth.objects, *files],
    )
    return _write(store, name, seen, draft, signing)


def restore_version(
    store: Store, seen: Version, old: Version, *, reason: str, signing: Signing
) -> Version:
    """Add a version after the version *seen* with the content of *old*, an earlier one.

    Raises:
        WorkflowMoved: another version was added meanwhile.
    """
    message = build_version_message(seen.name, ROLLBACK, old.workflow, reason)
    return _write_again(store, seen, old, message, signing)


def remove_version(store: Store, seen: Version, *, reason: str, signing: Signing) -> Version:
    """Add a removal after the version *seen*, with the same tree.

    Raises:
        WorkflowMoved: another version was added meanwhile.
    """
    message = build_version_message(seen.name, REMOVE, seen.workflow, reason)
    return _write_again(store, seen, seen, message, signing)


def _write_again(
    store: Store, seen: Version, old: Version, message: bytes, signing: Signing
) -> Version:
    """Add a version after the version *seen*, with the tree of *old*."""
    tree: Tree = get_tree(store.objects, old.commit.tree)
    draft = CommitDraft(tree=tree, parents=(seen.commit,), message=message, objects=[])
    return _write(store, seen.name, seen, draft, signing)


def build_version_message(name: str, event: str, workflow: NodeHash, reason: str = "") -> bytes:
    """Return the message of a version of the workflow *name*."""
    said = {PUT: "put", ROLLBACK: "rollback to", REMOVE: "removed"}[event]
    trailers = [
        ("Uwf-Event", event),
        ("Uwf-Workflow", workflow),
        ("Uwf-Workflow-Name", name),
        ("Uwf-Format", str(FORMAT)),
    ]
    return build_message(name, f"{said} {workflow}", body=reason, trailers=trailers)


def _write(
    store: Store, name: str, seen: Version | None, draft: CommitDraft, signing: Signing
) -> Version:
    oid = write_commit(store.objects, draft, signing)
    ref = WORKFLOWS + name
    if seen is None:
        moved = store.refs.create(ref, oid)
    else:
        moved = store.refs.advance(ref, seen=seen.commit.oid, to=oid)
    if not moved:
        debug("2DNYNQN0", "version lost", workflow=name, commit=oid)
        raise WorkflowMoved(name)
    debug("KRFN02T6", "version put", workflow=name, commit=oid)
    return _read_version(store, name, oid)
