"""Root refs: the refs that keep nodes, and reading many of them at once.

Read loose refs before packed ones: a ref that git packs in between is then seen twice, not missed.
A ref that holds no object id is left out.
Source: gitrepository-layout(5), git-pack-refs(1).
"""

import os
from collections.abc import Iterator

from uwf_git.errors import StoreDamaged
from uwf_git.store.disk.lockfile import PACKED_REFS
from uwf_git.store.lookup.cas_nodes import NODES_REF
from uwf_git.store.oid import Oid
from uwf_git.store.refs.packed_refs import PackedRefs, list_packed_refs
from uwf_git.store.refs.refs import loose_names
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.workflows.registry import WORKFLOWS

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
    """List the packed root refs and their values, the newest threads first.

    Raises:
        BadPackedRefs: git would not read the file either.
    """
    PackedRefs(os.path.join(store.path, PACKED_REFS))
    for ref, oid in reversed(list(list_packed_refs(store.path, "refs/"))):
        if is_root_ref(ref):
            yield ref, oid


def is_root_ref(ref: str) -> bool:
    """Check whether *ref* is the name of a root ref."""
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
