"""Packing without git: loose objects become one pack.

Owns: the order in which that is safe. Knows nothing of: the format of packs, other packers.
Always true: an object's loose file goes only when a pack has it that is on the disk and was
read back; packs are never rewritten or removed. What a step has written and no ref needs yet is
left as it is, since a ref may be about to need it.
Why not dulwich's `gc`, `repack` and `pack_loose_objects`: with our object store, whose
`add_objects` writes loose, they would "pack" each object into its own loose file and then remove
that; with dulwich's own nothing is forced to the disk before loose objects go, and a killed
process leaves locks.
"""

import os

from uwf_git.store.loose_objects import (
    list_loose,
    prune_loose,
    remove_loose,
    remove_packed_twice,
)
from uwf_git.store.objects import DurableObjects
from uwf_git.store.pack_plan import plan_pack
from uwf_git.store.pack_refs import list_tips
from uwf_git.store.pack_writing import write_pack
from uwf_git.store.packing_policy import find_expiry
from uwf_git.store.store import Store


def pack_loose(store: Store) -> None:
    """Pack the loose objects that refs need; remove those that nobody has needed for long.

    Raises:
        BadRef, BadPackedRefs: nobody can tell what is needed.
        PackingOvertaken: another program packs the same objects.
        OSError: the machine would not let it be written.
    """
    # An opened store may have given its packs away to other readers: look at them anew.
    objects = DurableObjects(os.path.join(store.path, "objects"))
    objects.durable = store.config.get_flag("uwf.fsync", default=True)
    try:
        loose = remove_packed_twice(objects, list_loose(os.fspath(objects.path)))
        plan = plan_pack(objects, loose, sorted(list_tips(store.path)))
        if plan:
            write_pack(objects, plan)
            remove_loose(objects, plan)
        expiry = find_expiry(store.config)
        if expiry is not None:
            tips = list_tips(store.path)
            prune_loose(store.path, objects, loose - plan.keys(), tips=tips, before_s=expiry)
    finally:
        objects.close()
