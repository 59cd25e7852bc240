"""Node roots: the refs and commits that keep nodes."""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from dulwich.objects import ObjectID

from uwf_git.errors import StoreDamaged
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.store.disk.lockfile import PACKED_REFS
from uwf_git.store.lookup.cas_nodes import NODES_REF
from uwf_git.store.nodes.tree import NODES, find_names, find_node
from uwf_git.store.objects.commit import CommitView, find_entry, read_commit
from uwf_git.store.oid import Oid
from uwf_git.store.refs.packed_refs import PackedRefs, list_packed_refs
from uwf_git.store.refs.refs import loose_names
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.workflows.registry import WORKFLOWS

# Node roots: commits whose trees keep nodes, and finding a node in one.
#
# The tip of a thread, an archive or refs/cas/nodes keeps all its nodes; of a workflow each
# version keeps its own. A damaged root is skipped, so that it does not hide the nodes of others.


class NodeRoot(NamedTuple):
    store: Store
    ref: str
    commit: CommitView

    def find(self, name: NodeHash) -> Node | None:
        nodes = self._folder()
        return None if nodes is None else find_node(self.store.objects, nodes, name)

    def names(self, prefix: str) -> Iterator[NodeHash]:
        """List the names that begin with *prefix*; their blobs are not read."""
        yield from find_names(self.store.objects, self._folder(), prefix)

    def lists(self, name: NodeHash) -> bool:
        try:
            return any(True for _name in self.names(name))
        except StoreDamaged:
            return False

    def list_readable(self, prefix: str) -> Iterator[NodeHash]:
        with suppress(StoreDamaged):
            yield from self.names(prefix)

    def _folder(self) -> ObjectID | None:
        try:
            return find_entry(self.store.objects, self.commit, NODES)
        except StoreDamaged:
            # The tree is damaged; `uwf verify` reports it.
            return None


def open_root(store: Store, ref: str) -> NodeRoot | None:
    try:
        oid = store.refs.find(ref)
        return None if oid is None else NodeRoot(store, ref, read_commit(store.objects, oid))
    except StoreDamaged:
        return None


def open_roots(store: Store, ref: str) -> Iterator[NodeRoot]:
    """Yield the roots of *ref*, newest first, up to the first root that cannot be read."""
    root = open_root(store, ref)
    while root is not None:
        yield root
        if not keeps_versions(ref) or not root.commit.parents:
            return
        try:
            before = read_commit(store.objects, root.commit.parents[0])
        except StoreDamaged:
            return
        root = root._replace(commit=before)


def keeps_versions(ref: str) -> bool:
    """Check whether commits behind the tip of *ref* keep nodes that the tip does not."""
    return ref.startswith(WORKFLOWS)


# Root refs: the refs that keep nodes, and reading many of them at once.
#
# Read loose refs before packed ones: a ref that git packs in between is then seen twice, not
# missed. A ref that holds no object id is left out. Source: gitrepository-layout(5),
# git-pack-refs(1).

_BELOW = (WORKFLOWS, ACTIVE, ARCHIVE)


def list_root_refs(store: Store) -> Iterator[str]:
    """List the refs that keep nodes, in the order in which they are searched."""
    yield NODES_REF
    for prefix in _BELOW:
        # The newest thread has the greatest id (a ULID).
        for name in reversed(store.refs.names(prefix)):
            yield prefix + name


def list_loose_roots(store: Store) -> Iterator[tuple[str, Oid]]:
    """List the loose root refs and their values, in the order of `list_root_refs`."""
    for ref in _loose_names(store.path):
        try:
            oid = store.refs.find(ref)
        except StoreDamaged:
            continue
        if oid is not None:
            yield ref, oid


def list_packed_roots(store: Store) -> Iterator[tuple[str, Oid]]:
    """List the packed root refs and their values, the newest threads first."""
    PackedRefs(os.path.join(store.path, PACKED_REFS))
    for ref, oid in reversed(list(list_packed_refs(store.path, "refs/"))):
        if is_root_ref(ref):
            yield ref, oid


def is_root_ref(ref: str) -> bool:
    if "\0" in ref or "/../" in ref:
        return False
    return ref.startswith(_BELOW) or ref == NODES_REF


def follow(ref: str) -> tuple[str, ...]:
    """Return the refs that have the nodes of *ref*: for an active thread also its archive."""
    if ref.startswith(ACTIVE):
        return ref, ARCHIVE + ref.removeprefix(ACTIVE)
    return (ref,)


def _loose_names(git_dir: str) -> Iterator[str]:
    if os.path.isfile(os.path.join(git_dir, NODES_REF)):
        yield NODES_REF
    for prefix in _BELOW:
        for name in sorted(loose_names(os.path.join(git_dir, prefix)), reverse=True):
            yield prefix + name
