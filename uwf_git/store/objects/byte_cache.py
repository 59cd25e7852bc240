"""A cache that holds a limited number of bytes; the oldest go first."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class ByteCache(Generic[Key, Value]):
    """Values by key, together at most so many bytes.

    Without a lock, so that a child that another thread forked cannot wait for one: each call on the
    dictionary is atomic, and at worst the sum of the bytes is a little off.
    """

    def __init__(self, most_bytes: int, *, largest: int | None = None) -> None:
        self._most = most_bytes
        self._largest = most_bytes if largest is None else largest
        self._held: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Key) -> Value | None:
        held = self._held.get(key)
        return None if held is None else held[0]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Hold *value*, which takes *size* bytes, unless the value is too large or held already."""
        if size > self._largest or key in self._held:
            return
        self._held[key] = value, size
        self._bytes += size
        while self._bytes > self._most:
            try:
                _oldest, (_value, freed) = self._held.popitem(last=False)
            except KeyError:
                self._bytes = 0
                return
            self._bytes -= freed
