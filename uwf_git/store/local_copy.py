"""Local copies: objects from one store to another on the same machine, without git.

Owns: making a pack of them for the other side. Knows nothing of: refs.
"""

from collections.abc import Sequence
from typing import cast

from dulwich.objects import ObjectID
from dulwich.pack import generate_unpacked_objects

from uwf_git.store.incoming import Incoming
from uwf_git.store.objects import DurableObjects, ObjectStore


def copy_objects(source: ObjectStore, needed: Sequence[ObjectID], incoming: Incoming) -> None:
    """Put the objects *needed* of *source* into *incoming*.

    Raises:
        DamagedObject, KeyError: one of them cannot be read.
        OSError: the machine would not let them be written.
    """
    if needed:
        todo = [(oid, None) for oid in needed]
        container = cast("DurableObjects", source)
        unpacked = generate_unpacked_objects(container, todo, ofs_delta=False, reuse_deltas=False)
        incoming.objects.add_pack_data(len(needed), unpacked)
