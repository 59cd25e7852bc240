"""Encode an object as a delta against another one.

By dulwich's Rust extension, in some 20 µs; its Python twin takes milliseconds, so that without the
extension objects stay whole.
Source: gitformat-pack(5), "Deltified representation".
"""

from importlib.util import find_spec

from dulwich.pack import create_delta

_IS_FAST = find_spec("dulwich._pack") is not None


def make_delta(base: bytes, target: bytes) -> bytes | None:
    """Return *target* as a delta against *base*; None if it is not smaller, or nobody can."""
    if not _IS_FAST:
        return None
    delta = b"".join(create_delta(base, target))
    return delta if len(delta) <= len(target) * 7 // 8 else None
