"""The quarantine: a store with the objects of a push that no hook has accepted yet; read-only.

Source: git-receive-pack(1), "QUARANTINE ENVIRONMENT"; git(1), GIT_ALTERNATE_OBJECT_DIRECTORIES.
"""

import os
from collections.abc import Callable, Iterable, Mapping

from dulwich.objects import ObjectID, ShaFile

from uwf_git.errors import Refused
from uwf_git.store.objects.objects import DurableObjects, ObjectStore, disk_places
from uwf_git.store.store import Store, open_store


class ReceivedObjects:
    """The objects of a push, and behind them those of the store."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.places = tuple(DurableObjects(path) for path in paths)
        """The object directories, in the order in which they are searched."""

    def __contains__(self, sha1: ObjectID) -> bool:
        return any(sha1 in place for place in self.places)

    def __getitem__(self, sha1: ObjectID) -> ShaFile:
        for place in self.places:
            try:
                return place[sha1]
            except KeyError:
                continue
        raise KeyError(sha1)

    def get_raw(self, name: ObjectID) -> tuple[int, bytes]:
        """Return git's number of the object's kind, and its content.

        Raises:
            KeyError: it is in none of the places.
            DamagedObject: it is damaged in the first place that has it.
        """
        for place in self.places:
            try:
                return place.get_raw(name)
            except KeyError:
                continue
        raise KeyError(name)

    def add_objects(
        self,
        objects: Iterable[tuple[ShaFile, str | None]],
        progress: Callable[..., None] | None = None,
    ) -> object:
        """Raise `Refused`."""
        del objects, progress
        raise Refused("nothing can be written while a push is being checked", code="not-writable")


def open_received(git_dir: str, environ: Mapping[str, str]) -> Store:
    """Open the store at *git_dir* as a hook of a push sees it."""
    store = open_store(git_dir, environ=environ)
    received = environ.get("GIT_OBJECT_DIRECTORY")
    if not received:
        return store
    others = split_alternates(environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", ""))
    paths = [received, *others, os.path.join(store.path, "objects")]
    # As in git, relative to the working directory of the hook. dict: drop duplicates.
    unique = dict.fromkeys(os.path.realpath(path) for path in paths)
    return store._replace(objects=ReceivedObjects(unique))


def mapped_bytes(objects: ObjectStore) -> int:
    """Return how much address space reading *objects* may take: packs are mapped whole."""
    return sum(map(_pack_bytes, disk_places(objects)))


def _pack_bytes(place: DurableObjects) -> int:
    try:
        with os.scandir(place.pack_dir) as files:
            own = sum(file.stat().st_size for file in files)
    except FileNotFoundError:
        own = 0
    return own + sum(map(_pack_bytes, place.others))


def split_alternates(text: str) -> list[str]:
    """Split a list of object directories as git does: at colons; parts may be quoted as in C."""
    paths: list[str] = []
    while text:
        if text.startswith('"'):
            path, text = _unquote(text)
        else:
            path, _colon, text = text.partition(":")
        if path:
            paths.append(path)
    return paths


def _unquote(text: str) -> tuple[str, str]:
    """Return the quoted path that *text* begins with, and the rest after its colon."""
    content, at = bytearray(), 1
    while at < len(text) and text[at] != '"':
        if text[at] == "\\":
            byte, at = _escaped(text, at + 1)
            content += byte
        else:
            content += os.fsencode(text[at])
            at += 1
    return os.fsdecode(bytes(content)), text[at + 1 :].removeprefix(":")


_ESCAPES = dict(zip('abfnrtv"\\', b'\a\b\f\n\r\t\v"\\', strict=True))


def _escaped(text: str, at: int) -> tuple[bytes, int]:
    octal = text[at : at + 3]
    if len(octal) == len("377") and set(octal) <= set("01234567") and octal[0] < "4":
        return bytes([int(octal, 8)]), at + 3
    return bytes([_ESCAPES[text[at]]]) if text[at : at + 1] in _ESCAPES else b"", at + 1
