"""What is left to dulwich of the objects on the disk: old formats, damage, what its client sends.

Only `DurableObjects.by_dulwich` imports this module: dulwich's object store costs 20 ms.
"""

import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from dulwich.object_store import BaseObjectStore, DiskObjectStore
from dulwich.objects import ObjectID, RawObjectID, hex_to_sha
from dulwich.pack import Pack as DulwichPack
from dulwich.pack import UnpackedObject

from uwf_git.store.objects.pack_file import INDEX, REF_DELTA, UNUSUAL, Pack

if TYPE_CHECKING:
    from uwf_git.store.objects.objects import DurableObjects


class DulwichObjects(DiskObjectStore):
    """dulwich's store of the same objects, which reads by ours what ours can read."""

    def __init__(self, objects: "DurableObjects") -> None:
        super().__init__(objects.path)
        # It holds this one, and nothing closes its packs but its end.
        self._objects: DurableObjects = weakref.proxy(objects)

    @property
    def alternates(self) -> list[BaseObjectStore]:
        return [other.by_dulwich for other in self._objects.others]

    def __contains__(self, sha: ObjectID | RawObjectID) -> bool:
        return sha in self._objects

    def get_raw(self, name: ObjectID | RawObjectID) -> tuple[int, bytes]:
        return self._objects.get_raw(name)

    def get_unusual(self, oid: ObjectID) -> tuple[int, bytes]:
        """Return what dulwich reads of *oid*; raise KeyError, or its errors about damage."""
        return super().get_raw(oid)

    def _update_pack_cache(self) -> list[DulwichPack]:
        """Let dulwich open only what it alone can read: it holds each index open."""
        names = self._objects.list_unusual_packs()
        for gone in self._pack_cache.keys() - set(names):
            self._pack_cache.pop(gone).close()
        new = []
        for name in names:
            if name not in self._pack_cache:
                # Suppressed: it is gone.
                with suppress(KeyError):
                    new.append(self._get_pack_by_name(name + INDEX))
        return new

    def iter_unpacked_subset(
        self,
        shas: Iterable[ObjectID | RawObjectID],
        *,
        include_comp: bool = False,
        allow_missing: bool = False,
        convert_ofs_delta: bool = True,
    ) -> Iterator[UnpackedObject]:
        """Yield the deltas against others of *shas*, to send them as they are.

        Only these entries are read, and not the packs around them. The options are dulwich's.
        """
        del include_comp, allow_missing, convert_ofs_delta
        places = dict(filter(None, map(self._find_place, shas)))
        names = {place: name for name, place in places.items()}
        for name, (pack, offset) in places.items():
            # Suppressed: it is gone, or damaged, and what is sent whole is checked.
            with suppress(*UNUSUAL):
                delta, base = pack.find_delta(offset) or (b"", None)
                against = None if base is None else names.get((pack, base))
                if against is not None:
                    yield UnpackedObject(
                        REF_DELTA, delta_base=against, decomp_chunks=[delta], sha=name
                    )

    def _find_place(
        self, oid: ObjectID | RawObjectID
    ) -> tuple[RawObjectID, tuple[Pack, int]] | None:
        for place in (self._objects, *self._objects.others):
            found = place.ask_packs(ObjectID(oid), lambda pack, offset: (pack, offset))
            if found is not None:
                return hex_to_sha(ObjectID(oid)), found
        return None

    def get_midx(self) -> None:
        """Return no multi-pack index: each pack has its own, and looking for it costs a stat."""
