"""New thread ids: the only use of python-ulid, which costs 50 ms to import.

Source: https://github.com/ulid/spec: 48 bits of milliseconds since 1970, 80 bits of randomness.
"""

from ulid import ULID

from uwf_git.model.names import ThreadId


def thread_id_at(time_ms: int, entropy: bytes) -> ThreadId:
    """Return the id of a thread created at *time_ms*, made unique by *entropy*.

    Raises:
        OverflowError: *time_ms* does not fit 48 bits.
    """
    return ThreadId(str(ULID.from_bytes(time_ms.to_bytes(6, "big") + entropy)))
