"""The agent's log: its standard error, passed on while it runs.

Owns: putting pieces of bytes together to text. Knows nothing of: who runs.
Always true: what comes after the log begins on a line of its own.
"""

import codecs
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from uwf_git.cli.streams import write_stderr


@contextmanager
def forwarded_log() -> Iterator[Callable[[bytes], None]]:
    """Give a function that prints what an agent logs; a piece may end within a character."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    last = "\n"

    def forward(log: bytes, *, is_all: bool = False) -> None:
        nonlocal last
        text = decoder.decode(log, final=is_all)
        last = text[-1:] or last
        write_stderr(text)

    try:
        yield forward
    finally:
        forward(b"", is_all=True)
        if last != "\n":
            write_stderr("\n")
