"""The packs of a store: which there are, which one has an object, what is held of them in memory.

Source: gitrepository-layout(5), objects/pack; gitformat-pack(5).
"""

import os
import time
from binascii import unhexlify
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from typing import TypeVar

from uwf_git.store.objects.byte_cache import ByteCache
from uwf_git.store.objects.pack_file import (
    INDEX,
    LARGEST_READ,
    OID_BYTES,
    PACK,
    UNUSUAL,
    Held,
    Pack,
    Stamp,
    pack_of,
    stamp_of,
)

_HELD_BYTES = 8 * 1024 * 1024
_LARGEST_HELD = 1024 * 1024

_MOST_FOLDERS = 4
_MOST_RECENT = 4

# Among more packs than these a look-up takes long; most were united meanwhile.
_MOST_ADDED = 32

_NEVER = -1
_MOST_LISTINGS = 100
# The clock of a file system goes in ticks of at most 10 ms; a machine that is shared may miss some.
_TICK_NS = 100_000_000

_Answer = TypeVar("_Answer")


class PackFolder:
    """The packs in a folder; the list is renewed when an object is not found.

    Packs come and go: each transition writes a pack, and we and git unite packs. Whoever removes a
    pack has its objects elsewhere before, so a new list has what a removed pack held. Threads of
    the program may share the folder.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        # Replaced whole, never changed: threads of the program read together.
        self._packs: dict[str, Pack] = {}
        # Those that had an object last, the newest first: the next is probably there too.
        self._recent: tuple[Pack, ...] = ()
        self._seen_ns = _NEVER
        self._added = 0
        self._held = Held(
            ByteCache(_HELD_BYTES, largest=_LARGEST_HELD),
            ByteCache(_HELD_BYTES, largest=LARGEST_READ),
        )

    def find(self, oid: bytes) -> tuple[int, bytes] | None:
        """Return git's number of the object's kind, and its content; None if it is not there.

        What is damaged in one pack may be whole in another.
        """
        name = _binary(oid)
        return None if name is None else self._ask(lambda pack: pack.find(name))

    def __contains__(self, oid: bytes) -> bool:
        return self.ask(oid, lambda _pack, _offset: True) is not None

    def ask(self, oid: bytes, question: Callable[[Pack, int], _Answer | None]) -> _Answer | None:
        """Return the first answer of a pack that has the object, asked with its offset.

        A question that raises one of `UNUSUAL` has no answer.
        """
        name = _binary(oid)
        if name is None:
            return None

        def ask_one(pack: Pack) -> _Answer | None:
            offset = pack.find_offset(name)
            return None if offset is None else question(pack, offset)

        return self._ask(ask_one)

    def names(self, *, unusual: bool = False) -> list[str]:
        """List the names of the packs without ending; or those that could not be read whole."""
        return [
            name.removesuffix(INDEX)
            for name, pack in self._packs.items()
            if pack.is_unusual or not unusual
        ]

    def add(self, pack: str, content: bytes, index: bytes) -> None:
        """Hold a pack that was just written, of which *pack* is the path without its ending."""
        name = os.path.basename(pack) + INDEX
        made = Pack(self._path, name, self._held)
        made.hold(content, index)
        self._packs = {**self._packs, name: made}
        self._note(made)
        # Another thread may have listed the packs in between: then this has undone it.
        self._seen_ns = _NEVER
        self._added += 1
        if self._added > _MOST_ADDED:
            self._added = 0
            with suppress(FileNotFoundError):
                self._list()

    def renew(self) -> None:
        """List the packs again, and forget what has changed on the disk."""
        try:
            changed_ns, began_ns = os.stat(self._path).st_mtime_ns, time.time_ns()
            stamps = dict(_list_stamps(self._path))
        except FileNotFoundError:
            self._packs, self._recent, self._seen_ns = {}, (), _NEVER
            return
        known = self._packs
        self._packs = {
            name: known[name]
            if name in known and known[name].is_as(stamp, stamps[pack_of(name)])
            else Pack(self._path, name, self._held)
            for name, stamp in stamps.items()
            if name.endswith(INDEX) and pack_of(name) in stamps
        }
        self._keep_recent()
        self._seen_ns = _seen(changed_ns, began_ns)

    def unmap(self) -> None:
        """Let go of the large packs, which are mapped; what is small stays in memory."""
        for pack in self._packs.values():
            pack.unmap()

    def _ask(self, question: Callable[["Pack"], _Answer | None]) -> _Answer | None:
        """Return the first answer of a pack; list the packs again before giving up."""
        for _listing in range(_MOST_LISTINGS):
            asked = self._packs
            found = self._ask_all(question)
            if found is not None:
                return found
            # Another thread may have listed them meanwhile: then this one has not asked them all.
            if not self._has_changed() and self._packs is asked:
                return None
        return None

    def _ask_all(self, question: Callable[["Pack"], _Answer | None]) -> _Answer | None:
        recent = self._recent
        others = (pack for pack in self._packs.values() if pack not in recent)
        for pack in chain(recent, others):
            try:
                found = question(pack)
            except FileNotFoundError:
                # Removed since the packs were listed, and not opened before.
                self._forget(pack)
            except UNUSUAL:
                pack.is_unusual = True
            else:
                if found is not None:
                    self._note(pack)
                    return found
        return None

    def _note(self, pack: Pack) -> None:
        recent = self._recent
        if not recent or pack is not recent[0]:
            self._recent = (pack, *(each for each in recent if each is not pack))[:_MOST_RECENT]

    def _keep_recent(self) -> None:
        """Forget which of the packs that have gone were asked last."""
        packs = self._packs
        self._recent = tuple(pack for pack in self._recent if packs.get(pack.name) is pack)

    def _forget(self, pack: "Pack") -> None:
        self._packs = {name: each for name, each in self._packs.items() if each is not pack}
        self._keep_recent()
        # Last, here and below: another thread may have listed the packs meanwhile.
        self._seen_ns = _NEVER

    def _has_changed(self) -> bool:
        """List the packs again if the folder has changed; return whether there are others.

        What is open of a removed pack is let go: its objects are elsewhere.
        """
        try:
            if os.stat(self._path).st_mtime_ns == self._seen_ns:
                return False
            # A pack that is united while the names are read may be missing under its old name and
            # under its new one; so what has just changed, or changes, is listed twice.
            if self._list() or (self._seen_ns == _NEVER and self._list()):
                return True
        except FileNotFoundError:
            pass
        return False

    def _list(self) -> bool:
        changed_ns, began_ns = os.stat(self._path).st_mtime_ns, time.time_ns()
        files = set(os.listdir(self._path))
        is_settled = os.stat(self._path).st_mtime_ns == changed_ns
        names = {name for name in files if name.endswith(INDEX) and pack_of(name) in files}
        known = self._packs
        is_other = names != known.keys()
        if is_other:
            self._packs = {
                name: known.get(name) or Pack(self._path, name, self._held) for name in names
            }
            self._keep_recent()
        self._seen_ns = _seen(changed_ns, began_ns) if is_settled else _NEVER
        return is_other


_opened: OrderedDict[str, PackFolder] = OrderedDict()


def open_pack_folder(path: str) -> PackFolder:
    """Return the packs in the folder at *path*, as they are on the disk now.

    A program opens its store again for each command: what it held of the packs, and what it wrote
    itself, is still in memory then.
    """
    path = os.path.abspath(path)
    folder = _opened.pop(path, None) or PackFolder(path)
    _opened[path] = folder
    while len(_opened) > _MOST_FOLDERS:
        _opened.popitem(last=False)
    folder.renew()
    return folder


def _seen(changed_ns: int, began_ns: int) -> int:
    """Return the time of a folder that was listed from *began_ns* on, or a mark for "not sure"."""
    # A second change within a tick of the clock would leave the same time.
    return changed_ns if began_ns - changed_ns > _TICK_NS else _NEVER


def _list_stamps(path: str) -> Iterator[tuple[str, Stamp]]:
    with os.scandir(path) as entries:
        for entry in entries:
            # Suppressed: it has just been removed.
            with suppress(FileNotFoundError):
                if entry.name.endswith((INDEX, PACK)):
                    yield entry.name, stamp_of(entry.stat())


def _binary(oid: bytes) -> bytes | None:
    try:
        name = unhexlify(oid)
    except ValueError:
        return None
    return name if len(name) == OID_BYTES else None
