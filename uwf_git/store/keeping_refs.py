"""Keeping refs: the refs that keep nodes.

Owns: which they are, the order in which they are asked, and reading many at once.
Knows nothing of: nodes, what is behind a ref.
Always true: whoever reads the loose ones first and the packed ones then misses none that git
packs in between; a ref that holds no object id keeps nothing, and is left out.
Source: gitrepository-layout(5), git-pack-refs(1).
"""

import os
from collections.abc import Iterator

from uwf_git.errors import StoreDamaged
from uwf_git.store.heads import ACTIVE, ARCHIVE
from uwf_git.store.loose_nodes import NODES_REF
from uwf_git.store.packed_refs import PackedRefs, read_packed_refs
from uwf_git.store.ref_lock import PACKED_REFS
from uwf_git.store.refs import Oid, is_oid, loose_names
from uwf_git.store.registry import WORKFLOWS
from uwf_git.store.store import Store

_BELOW = (WORKFLOWS, ACTIVE, ARCHIVE)
_OID_LENGTH = 40


def list_keeping_refs(store: Store) -> Iterator[str]:
    """List the refs that keep nodes, in the order in which they are asked."""
    yield NODES_REF
    for prefix in _BELOW:
        # The newest thread has the greatest id.
        for name in reversed(store.refs.names(prefix)):
            yield prefix + name


def list_loose(store: Store) -> Iterator[tuple[str, Oid]]:
    """List those that have a file of their own, with what they point at, in that order."""
    for ref in _loose_names(store.path):
        try:
            oid = store.refs.find(ref)
        except StoreDamaged:
            continue
        if oid is not None:
            yield ref, oid


def list_packed(store: Store) -> Iterator[tuple[str, Oid]]:
    """List those in packed-refs, with what they point at, the newest threads first.

    Raises:
        BadPackedRefs: git would read none of it.
    """
    path = os.path.join(store.path, PACKED_REFS)
    PackedRefs(path)
    content = read_packed_refs(path)
    # Backwards and without a list of the lines: there may be hundreds of thousands.
    end = content.rfind(b"\n")
    while end > 0:
        start = content.rfind(b"\n", 0, end) + 1
        ref = os.fsdecode(content[start + _OID_LENGTH + 1 : end])
        oid = os.fsdecode(content[start : start + _OID_LENGTH])
        if is_keeping(ref) and is_oid(oid):
            yield ref, Oid(oid)
        end = start - 1


def stamp_packed(store: Store) -> str:
    """Give what tells packed-refs as it is from any other state of it; "" if there is none."""
    try:
        found = os.stat(os.path.join(store.path, PACKED_REFS))
    except FileNotFoundError:
        return ""
    return f"{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def is_keeping(ref: str) -> bool:
    """Tell whether *ref* is the name of one that keeps nodes."""
    if "\0" in ref or "/../" in ref:
        return False
    return ref.startswith(_BELOW) or ref == NODES_REF


def follow(ref: str) -> tuple[str, ...]:
    """Give the refs that have what *ref* had: of an active thread also its archive."""
    if ref.startswith(ACTIVE):
        return ref, ARCHIVE + ref.removeprefix(ACTIVE)
    return (ref,)


def _loose_names(git_dir: str) -> Iterator[str]:
    if os.path.isfile(os.path.join(git_dir, NODES_REF)):
        yield NODES_REF
    for prefix in _BELOW:
        for name in sorted(loose_names(os.path.join(git_dir, prefix)), reverse=True):
            yield prefix + name
