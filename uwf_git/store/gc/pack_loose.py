"""Pack loose objects into one pack without git.

A loose file is removed only when a pack on the disk that was read back has its object. Packs are
never rewritten or removed. Objects that no ref reaches yet stay loose: a running step may be about
to reference them.
Why not dulwich's `gc`, `repack` and `pack_loose_objects`: with our object store, whose
`add_objects` writes loose objects, they would "pack" each object into its own loose file and then
remove that; with dulwich's own store nothing is synced before loose objects go, and a killed
process leaves locks.
"""

import os

from uwf_git.store.gc.loose_objects import (
    list_loose_objects,
    prune_loose,
    remove_loose_objects,
    remove_packed_twice,
)
from uwf_git.store.gc.pack_plan import plan_pack
from uwf_git.store.gc.pack_refs import list_tips
from uwf_git.store.gc.pack_writing import write_pack
from uwf_git.store.gc.policy import find_expiry
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.store import Store


def pack_loose(store: Store) -> None:
    """Pack the loose objects that refs reach; prune unreachable ones that are old enough.

    Raises:
        BadRef, BadPackedRefs: a ref cannot be read, so what is reachable is unknown.
        PackingOvertaken: another program packs the same objects.
        OSError: the system refused a write.
    """
    # An object store of its own: the opened one may have shared its packs with other readers.
    objects = DurableObjects(os.path.join(store.path, "objects"))
    objects.durable = store.config.get_flag("uwf.fsync", default=True)
    try:
        loose = remove_packed_twice(objects, list_loose_objects(os.fspath(objects.path)))
        plan = plan_pack(objects, loose, sorted(list_tips(store.path)))
        if plan:
            write_pack(objects, plan)
            remove_loose_objects(objects, plan)
        expiry = find_expiry(store.config)
        if expiry is not None:
            tips = list_tips(store.path)
            prune_loose(store.path, objects, loose - plan.keys(), tips=tips, before_s=expiry)
    finally:
        objects.close()
