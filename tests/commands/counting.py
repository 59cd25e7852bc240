"""Counts what a command reads of a store: objects, and locks that it takes."""

import fcntl

import pytest

from uwf_git.store.objects.objects import DurableObjects


class Counted:
    """What was read since the last ``clear``."""

    def __init__(self) -> None:
        self.objects: list[bytes] = []
        self.locks = 0

    def clear(self) -> None:
        """Begin anew."""
        self.objects.clear()
        self.locks = 0


def count_reads(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Count from now on; everything else stays as it is."""
    counted = Counted()
    get_raw, flock = DurableObjects.get_raw, fcntl.flock

    def counted_get(objects: DurableObjects, name: bytes) -> tuple[int, bytes]:
        counted.objects.append(name)
        return get_raw(objects, name)  # type: ignore[arg-type]  # any bytes

    def counted_flock(descriptor: int, operation: int) -> None:
        counted.locks += 1
        flock(descriptor, operation)

    monkeypatch.setattr(DurableObjects, "get_raw", counted_get)
    monkeypatch.setattr(fcntl, "flock", counted_flock)
    return counted
