"""Count what a server sends besides objects: its list of refs, its answers, its messages."""

from collections.abc import Callable
from typing import IO

from uwf_git.store.git.config import GitConfig
from uwf_git.store.objects.limited import render_size
from uwf_git.store.objects.pack_limits import MAX_FETCH_REFS, transfer_too_large
from uwf_git.store.remotes.limits import read_fetch_limits

_MOST_ERROR_BYTES = 64 * 1024


class Meter:
    """The bytes of one connection."""

    def __init__(self, most_bytes: int) -> None:
        self._left = self._most = most_bytes

    def counted(self, read: Callable[..., bytes]) -> Callable[..., bytes]:
        """Return *read*, which raises `Refused` when the server has sent too much."""

        def read_and_count(*size: int) -> bytes:
            content = read(*size)
            self._left -= len(content)
            if self._left < 0:
                most = render_size(self._most)
                raise transfer_too_large(
                    f"more than {most} of refs and messages", most, setting=MAX_FETCH_REFS
                )
            return content

        return read_and_count

    def allow(self, objects: bytes) -> None:
        """Do not count *objects*, which were read: they have limits of their own."""
        self._left += len(objects)


def open_meter(config: GitConfig) -> Meter:
    """Return a meter for one connection of a store with this *config*.

    Raises:
        Refused: a limit is not a number as git config spells it.
    """
    return Meter(read_fetch_limits(config).most_talk_bytes)


class ErrorOutput:
    """The beginning of what ssh, or a git that it started, writes to standard error."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readlines(self) -> list[bytes]:
        """Return its first lines."""
        return self._stream.read(_MOST_ERROR_BYTES).splitlines(keepends=True)
