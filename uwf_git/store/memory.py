"""A store in memory, for tests and dry runs: dulwich's memory objects and refs.

Owns: fitting dulwich's refs to ours. Always true: it gives the same answers as the disk.
"""

from dulwich.object_store import MemoryObjectStore
from dulwich.objects import ObjectID
from dulwich.refs import DictRefsContainer, Ref

from uwf_git.store.refs import Oid


class MemoryRefs:
    """The refs of a store that is not kept."""

    def __init__(self) -> None:
        self._refs = DictRefsContainer({})

    def find(self, name: str) -> Oid | None:
        """Give what *name* points at, or None if there is no such ref."""
        oid = self._refs.read_loose_ref(Ref(name.encode()))
        return None if oid is None else Oid(oid.decode())

    def names(self, prefix: str) -> list[str]:
        """List the names below *prefix* (which ends in a slash), sorted, prefix left off."""
        names = (name.decode() for name in self._refs.allkeys())
        return sorted(name[len(prefix) :] for name in names if name.startswith(prefix))

    def create(self, name: str, to: Oid) -> bool:
        """Make *name* point at *to*; change nothing and say False if it exists."""
        return self._refs.add_if_new(Ref(name.encode()), ObjectID(to.encode()))

    def advance(self, name: str, *, seen: Oid, to: Oid) -> bool:
        """Move *name* from *seen* to *to*; change nothing and say False if it is elsewhere."""
        return self._refs.set_if_equals(
            Ref(name.encode()), ObjectID(seen.encode()), ObjectID(to.encode())
        )

    def delete(self, name: str, *, seen: Oid) -> bool:
        """Remove *name* if it points at *seen*; change nothing and say False if it does not."""
        return self._refs.remove_if_equals(Ref(name.encode()), ObjectID(seen.encode()))

    def move(self, name: str, *, seen: Oid, to_name: str, to: Oid) -> bool:
        """Put *to_name*, at *to*, in the place of *name*; change nothing and say False if not."""
        return self.find(name) == seen and self.create(to_name, to) and self.delete(name, seen=seen)


class MemoryObjects(MemoryObjectStore):
    """The objects of a store that is not kept."""
