"""The registry: workflow names and their versions.

Owns: the refs below refs/workflows/, one commit a version, newest at the tip.
Knows nothing of: YAML, what a workflow means.
Always true: a version is never rewritten; the tree of each holds the closure of its Workflow
node beside the source, byte for byte. A removal and a rollback are commits like any other: what
they take away, or bring back, stays where it was.
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
from uwf_git.store.node_tree import MissingNode, add_nodes, find_node, get_tree
from uwf_git.store.refs import Oid
from uwf_git.store.store import Store
from uwf_git.store.workflow_tree import NODES, SOURCE_FILE, Source, build_tree

WORKFLOWS = "refs/workflows/"

PUT, ROLLBACK, REMOVE = "put", "rollback", "remove"


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
            hint="look at it with `uwf workflow history`, then try again",
            workflow=name,
        )


class Version(NamedTuple):
    """One version of a workflow."""

    name: str
    commit: CommitView
    workflow: NodeHash
    """Its Workflow node; of a removal that of the version that was removed."""

    event: str = PUT
    """How it came: ``put``, ``rollback`` or ``remove``."""

    @property
    def is_removed(self) -> bool:
        """Tell whether this takes the name away instead of giving it a workflow."""
        return self.event == REMOVE


def list_names(store: Store) -> list[str]:
    """List the names of the registry, those that were removed among them, sorted."""
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
        trailers = parse_trailers(commit.message)
    except BadMessage as error:
        raise error.of_commit(oid) from error
    workflow = trailers.get("Uwf-Workflow", "")
    if not is_node_hash(workflow):
        raise DamagedCommit(oid, "names no workflow")
    return Version(name, commit, NodeHash(workflow), trailers.get("Uwf-Event", PUT))


def list_versions(store: Store) -> Iterator[Version]:
    """Give every version of every workflow: by name, and the newest first."""
    for name in list_names(store):
        yield from walk_versions(store, find_version(store, name))


def walk_versions(store: Store, newest: Version | None) -> Iterator[Version]:
    """Give *newest* and those before it, down to the first.

    Raises:
        DamagedCommit, BadMessage: one of them is none of ours; those after it were given.
    """
    version = newest
    while version is not None:
        yield version
        parents = version.commit.parents
        version = _read_version(store, version.name, parents[0]) if parents else None


def get_version_node(store: Store, version: Version, name: NodeHash) -> Node:
    """Give the node *name* from the closure of a version.

    Raises:
        MissingNode, DamagedNode: it is not there, or not what it says.
    """
    nodes = find_entry(store.objects, version.commit, NODES)
    node = find_node(store.objects, nodes, name)
    if node is None:
        raise MissingNode(name)
    return node


def read_source(store: Store, version: Version) -> bytes:
    """Give the file that a version was put from, byte for byte."""
    return read_file(store.objects, version.commit, SOURCE_FILE)


def add_version(
    store: Store,
    seen: Version | None,
    *,
    added: tuple[str, Node, Iterable[Node]],
    source: Source,
    signing: Signing,
) -> Version:
    """Add a version after the one that was *seen*; *added* is name, Workflow node, closure.

    Raises:
        WorkflowMoved: another version came in between.
        OSError: the machine would not let it be written.
    """
    name, workflow, closure = added
    growth = add_nodes(store.objects, None, [workflow, *closure])
    tree, files = build_tree(source, head=growth.blobs[workflow.hash], nodes=growth.nodes)
    draft = CommitDraft(
        tree=tree,
        parents=() if seen is None else (seen.commit,),
        message=_message(name, f"put {workflow.hash}", event=PUT, workflow=workflow.hash),
        objects=[*growth.objects, *files],
    )
    return _write(store, name, seen, draft, signing)


def restore_version(
    store: Store, seen: Version, old: Version, *, reason: str, signing: Signing
) -> Version:
    """Add a version after the one that was *seen* which is what *old*, an earlier one, was.

    Raises:
        WorkflowMoved: another version came in between.
        OSError: the machine would not let it be written.
    """
    message = _message(
        seen.name,
        f"rollback to {old.workflow}",
        event=ROLLBACK,
        workflow=old.workflow,
        reason=reason,
    )
    return _write_again(store, seen, old, message, signing)


def remove_version(store: Store, seen: Version, *, reason: str, signing: Signing) -> Version:
    """Add the removal of the version that was *seen*: its name means nothing from then on.

    Its tree is that of the version: what was removed stays as readable as it was.

    Raises:
        WorkflowMoved: another version came in between.
        OSError: the machine would not let it be written.
    """
    message = _message(
        seen.name,
        f"removed {seen.workflow}",
        event=REMOVE,
        workflow=seen.workflow,
        reason=reason,
    )
    return _write_again(store, seen, seen, message, signing)


def _write_again(
    store: Store, seen: Version, old: Version, message: bytes, signing: Signing
) -> Version:
    """Add a version after the one that was *seen*, with the tree of *old*."""
    tree: Tree = get_tree(store.objects, old.commit.tree)
    draft = CommitDraft(tree=tree, parents=(seen.commit,), message=message, objects=[])
    return _write(store, seen.name, seen, draft, signing)


def _message(name: str, said: str, *, event: str, workflow: NodeHash, reason: str = "") -> bytes:
    trailers = [
        ("Uwf-Event", event),
        ("Uwf-Workflow", workflow),
        ("Uwf-Workflow-Name", name),
        ("Uwf-Format", str(FORMAT)),
    ]
    return build_message(name, said, body=reason, trailers=trailers)


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
