"""Pack the objects of a store into one pack without git.

A loose object or a pack goes only when a new pack that was read back has what refs reach of it, and
another one the rest. Packs of git, of fetches and of earlier packing are left as they are.
Why not dulwich's `gc`, `repack` and `pack_loose_objects`: with our object store, whose
`add_objects` writes a pack, they would pack each object by itself and then remove that; with
dulwich's own store nothing is synced before objects go, and a killed process leaves locks.
"""

import os
from collections.abc import Collection, Mapping
from typing import NamedTuple

from dulwich.objects import ObjectID, RawObjectID, sha_to_hex

from uwf_git.errors import StoreDamaged
from uwf_git.store.gc.loose_objects import (
    has_other_roots,
    list_loose_objects,
    prune_loose,
    remove_loose_objects,
    remove_packed_twice,
)
from uwf_git.store.gc.pack_plan import Planned, list_reachable, plan_pack
from uwf_git.store.gc.pack_refs import list_tips
from uwf_git.store.gc.pack_writing import write_checked_pack
from uwf_git.store.gc.policy import find_expiry
from uwf_git.store.gc.small_packs import (
    SmallPack,
    list_kept_packs,
    list_own_packs,
    list_packed_names,
    remove_packs,
)
from uwf_git.store.gc.unite import write_union
from uwf_git.store.gc.whole_entries import read_whole_entries
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.objects.pack_writer import Entry
from uwf_git.store.store import Store

_NS = 1_000_000_000


class _Source(NamedTuple):
    """A pack that steps wrote, and the objects in it."""

    pack: SmallPack
    oids: frozenset[ObjectID]


def pack_without_git(store: Store) -> None:
    """Pack the objects that refs reach; prune unreachable ones that are old enough.

    Raises:
        BadRef, BadPackedRefs: a ref cannot be read, so what is reachable is unknown.
        PackingOvertaken: another program packs the same objects.
        OSError: the system refused a write.
    """
    # An object store of its own: the opened one may have shared its packs with other readers.
    objects = DurableObjects(os.path.join(store.path, "objects"))
    objects.durable = store.config.get_flag("uwf.fsync", default=True)
    folder = os.path.join(store.path, "objects", "pack")
    try:
        # Before the packs are listed: these then hold all that the tips need.
        tips = sorted(list_tips(store.path))
        kept = _read_names(list_kept_packs(folder))
        sources = [_Source(pack, _read_names([pack.path])) for pack in list_own_packs(folder)]
        loose = remove_packed_twice(objects, list_loose_objects(os.fspath(objects.path)))
        todo = loose.union(*(source.oids for source in sources))
        plan = plan_pack(objects, todo, tips, through=kept)
        if plan:
            write_checked_pack(objects, plan)
            remove_loose_objects(objects, loose & plan.keys())
        _replace(store, objects, sources, plan)
        expiry = find_expiry(store.config)
        if expiry is not None:
            left, now = loose - plan.keys(), list_tips(store.path)
            prune_loose(store.path, objects, left, tips=now, before_s=expiry)
    finally:
        objects.close()


def _replace(
    store: Store,
    objects: DurableObjects,
    sources: Collection[_Source],
    plan: Mapping[ObjectID, Planned],
) -> None:
    """Remove the *sources* of *plan*, after the rest in them has its own pack.

    What is pruned is left out. A source of nothing else than such a rest stays.
    """
    dead = _find_dead(store, objects, sources, plan)
    rest: dict[bytes, Entry] = {}
    mtime_ns = 0
    done = []
    for source in sources:
        left = source.oids - plan.keys() - dead.get(source.pack.path, frozenset())
        if left == source.oids:
            continue
        entries = read_whole_entries(source.pack.path) if left else []
        if entries is not None:
            done.append(source.pack)
            mtime_ns = max(mtime_ns, source.pack.mtime_ns if left else 0)
            for entry in entries:
                if sha_to_hex(RawObjectID(entry.oid)) in left:
                    rest[entry.oid] = entry
    if rest:
        write_union(store, list(rest.values()), mtime_ns=mtime_ns)
    remove_packs(done)


def _find_dead(
    store: Store,
    objects: DurableObjects,
    sources: Collection[_Source],
    plan: Mapping[ObjectID, Planned],
) -> dict[str, frozenset[ObjectID]]:
    """Return for each old pack what no ref reaches."""
    expiry = find_expiry(store.config)
    if expiry is None or has_other_roots(store.path):
        return {}
    old = {
        source.pack.path: source.oids - plan.keys()
        for source in sources
        if source.pack.mtime_ns < expiry * _NS
    }
    if not any(old.values()):
        return {}
    try:
        needed = list_reachable(objects, list_tips(store.path))
    except (KeyError, StoreDamaged):
        # What a damaged object needs is unknown.
        return {}
    return {path: oids - needed for path, oids in old.items()}


def _read_names(paths: Collection[str]) -> frozenset[ObjectID]:
    """List the objects in packs; one that is gone by now has none."""
    names = (name for path in paths for name in list_packed_names(path))
    return frozenset(sha_to_hex(RawObjectID(name)) for name in names)
