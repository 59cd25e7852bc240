"""Limits on a pack that a remote sends: sizes, number of objects, depth of deltas.

A few kilobytes on the wire can unfold to gigabytes, so each size is judged before it is unfolded.
"""

from typing import NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.objects.json_file import DEFAULT_BLOB_BYTES
from uwf_git.store.objects.limited import most_bytes_of, render_size

MAX_BLOB_SIZE = "uwf.maxBlobSize"
MAX_FETCH_SIZE = "uwf.maxFetchSize"
MAX_FETCH_OBJECTS = "uwf.maxFetchObjects"
MAX_FETCH_REFS = "uwf.maxFetchRefs"

DEFAULT_OBJECTS = 1_000_000
DEFAULT_REFS = 100_000

LONGEST_CHAIN = 4095
"""The most deltas from an object to its base: git writes no longer chain (pack.depth)."""

_TALK_BYTES = 24 * 1024 * 1024
# A line of git's list of refs; as Python values it takes ten times as much.
_REF_BYTES = 96

_GIB = 1024**3
_PACK_BYTES = 4 * _GIB
_TIMES_A_PACK = 256
# What git writes unfolds to less; where it does not, memory and time are still bounded.
_LEAST_UNFOLDED = _GIB
_TIMES_UNFOLDED = 8


def transfer_too_large(what: str, most: str, *, setting: str | None = None) -> Refused:
    """Say that a remote sends more than this store accepts; nothing of it was kept."""
    raised = f"`git config --global {setting} NUMBER` accepts more; " if setting else ""
    return Refused(
        f"the remote sends {what}, and at most {most} are accepted; nothing was kept",
        code="transfer-too-large",
        hint=f"{raised}ask the remote's owner whether it should",
        setting=setting,
    )


class PackLimits(NamedTuple):
    """What one pack may hold, and the refs that it is for."""

    most_blob_bytes: int = DEFAULT_BLOB_BYTES
    most_objects: int = DEFAULT_OBJECTS
    most_bytes: int | None = None
    """Of all objects together; None: 4g in the pack, and 256 times the pack, but at least 1g."""

    most_refs: int = DEFAULT_REFS
    """That are new, or have moved: each of them is checked."""

    @property
    def most_talk_bytes(self) -> int:
        """What a remote may send besides the pack: all its refs, answers and messages."""
        return max(_TALK_BYTES, self.most_refs * _REF_BYTES)

    def check_refs(self, refs: int) -> None:
        """Raise `Refused` for so many refs that are new, or have moved."""
        if refs > self.most_refs:
            told = f"{refs} refs that are new or have moved"
            raise transfer_too_large(told, str(self.most_refs), setting=MAX_FETCH_REFS)

    def check_pack(self, size_bytes: int) -> None:
        """Raise `Refused` for a pack of so many bytes."""
        most = _PACK_BYTES if self.most_bytes is None else self.most_bytes
        if size_bytes > most:
            told = f"a pack of more than {render_size(most)}"
            raise transfer_too_large(told, render_size(most), setting=MAX_FETCH_SIZE)

    def check_count(self, objects: int) -> None:
        """Raise `Refused` for a pack of so many objects."""
        if objects > self.most_objects:
            raise transfer_too_large(
                f"{objects} objects", str(self.most_objects), setting=MAX_FETCH_OBJECTS
            )

    def check_object(self, kind: str, size_bytes: int) -> None:
        """Raise `Refused` for an object of this *kind* and size."""
        most = most_bytes_of(kind, most_blob_bytes=self.most_blob_bytes)
        if size_bytes > most:
            raise transfer_too_large(
                f"a {kind} of {render_size(size_bytes)}",
                render_size(most),
                setting=MAX_BLOB_SIZE if kind == "blob" else None,
            )

    def check_delta(self, size_bytes: int) -> None:
        """Raise `Refused` for an object of so many bytes whose kind is not known yet."""
        kinds = ("tree", "blob")
        most = [most_bytes_of(kind, most_blob_bytes=self.most_blob_bytes) for kind in kinds]
        if size_bytes > max(most):
            self.check_object(kinds[most.index(max(most))], size_bytes)

    def check_depth(self, deltas: int) -> None:
        """Raise `Refused` for a delta whose whole object is so many deltas away."""
        if deltas > LONGEST_CHAIN:
            raise transfer_too_large(f"a chain of {deltas} deltas", str(LONGEST_CHAIN))

    def check_unfolded(self, size_bytes: int, pack_bytes: int, *, again: bool = False) -> None:
        """Raise `Refused` if a pack unfolds to so many bytes.

        With *again* the bytes count that were made, some of them several times.
        """
        most = self.most_bytes
        if most is None:
            most = max(_LEAST_UNFOLDED, _TIMES_A_PACK * pack_bytes)
        if size_bytes > most * (_TIMES_UNFOLDED if again else 1):
            told = f"a pack of {render_size(pack_bytes)} that unfolds to {render_size(size_bytes)}"
            raise transfer_too_large(told, render_size(most), setting=MAX_FETCH_SIZE)
