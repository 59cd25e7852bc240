"""List refs with what they point at, reading packed-refs once for all of them.

A loose ref counts before a packed one. A ref whose file holds no object id is left out of
``list_refs``, also if an older value of it is packed; ``list_bad_files`` names it.
Source: gitrepository-layout(5), git-pack-refs(1).
"""

import os

from uwf_git.store.oid import Oid
from uwf_git.store.refs.packed_refs import list_packed_refs
from uwf_git.store.refs.refs import loose_names, read_loose


def list_refs(git_dir: str, prefix: str) -> dict[str, Oid]:
    """Return the refs directly below *prefix* (which ends in a slash), by name without it.

    Raises:
        BadPackedRefs: git could not read packed-refs either.
    """
    # Loose before packed: a ref that git packs in between is then in at least one of the two.
    loose = read_loose_refs(git_dir, prefix)
    packed = ((ref.removeprefix(prefix), oid) for ref, oid in list_packed_refs(git_dir, prefix))
    found = {name: oid for name, oid in packed if "/" not in name}
    values: dict[str, Oid | None] = {**found, **loose}
    return {name: oid for name, oid in sorted(values.items()) if oid is not None}


def list_bad_files(git_dir: str, prefix: str) -> list[str]:
    """List the refs directly below *prefix*, in full, whose own file holds no object id."""
    loose = read_loose_refs(git_dir, prefix)
    return sorted(prefix + name for name, oid in loose.items() if oid is None)


def read_loose_refs(git_dir: str, prefix: str) -> dict[str, Oid | None]:
    """Return the loose refs directly below *prefix*, by name without it; None: no object id."""
    folder = os.path.join(git_dir, prefix)
    found: dict[str, Oid | None] = {}
    for name in loose_names(folder):
        try:
            found[name] = read_loose(os.path.join(folder, name))
        except FileNotFoundError:
            continue
    return found
