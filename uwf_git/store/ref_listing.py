"""Ref listings: many refs with what they point at, read in one go.

Owns: reading a folder of refs with its share of packed-refs, once. Knows nothing of: writing.
Always true: one look at each file, however many refs there are; asking for them one by one reads
packed-refs again for each. A loose ref comes before a packed one. What is no object id is left
out: whoever wants that ref itself is told so, and `list_bad_files` names them.
Source: gitrepository-layout(5), git-pack-refs(1).
"""

import os
import re
from collections.abc import Iterator

from uwf_git.store.packed_refs import read_packed_refs
from uwf_git.store.ref_lock import PACKED_REFS
from uwf_git.store.refs import Oid, loose_names, read_loose
from uwf_git.store.store import Store


def list_refs(store: Store, prefix: str) -> dict[str, Oid]:
    """Give the refs right below *prefix* (which ends in a slash), prefix left off, by name."""
    if not store.is_kept:
        found = {name: store.refs.find(prefix + name) for name in store.refs.names(prefix)}
        return {name: oid for name, oid in found.items() if oid is not None and "/" not in name}
    # Loose ones first: what git packs in between is in one of the two then, or in both.
    loose = _read_loose(os.path.join(store.path, prefix))
    return dict(sorted({**_read_packed(store.path, prefix), **loose}.items()))


def list_bad_files(store: Store, prefix: str) -> list[str]:
    """Give the refs right below *prefix* whose own file holds no object id, in full."""
    if not store.is_kept:
        return []
    found = _read_files(os.path.join(store.path, prefix))
    return sorted(prefix + name for name, oid in found if oid is None)


def _read_loose(folder: str) -> dict[str, Oid]:
    return {name: oid for name, oid in _read_files(folder) if oid is not None}


def _read_files(folder: str) -> Iterator[tuple[str, Oid | None]]:
    for name in loose_names(folder):
        try:
            oid = read_loose(os.path.join(folder, name))
        except FileNotFoundError:
            continue
        yield name, oid


def _read_packed(git_dir: str, prefix: str) -> dict[str, Oid]:
    content = read_packed_refs(os.path.join(git_dir, PACKED_REFS))
    line = re.compile(
        rb"^([0-9a-f]{40}) " + re.escape(os.fsencode(prefix)) + rb"([^/\n]+)\n", re.MULTILINE
    )
    return {os.fsdecode(each[2]): Oid(each[1].decode()) for each in line.finditer(content)}
