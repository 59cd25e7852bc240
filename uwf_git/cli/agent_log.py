"""The agent's log: its standard error, passed on while it runs.

Owns: putting pieces of bytes together to text. Knows nothing of: who runs.
"""

import codecs
from collections.abc import Callable

from uwf_git.cli.streams import write_stderr


def log_forwarder() -> Callable[[bytes], None]:
    """Make a function that prints what an agent logs; a piece may end within a character."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def forward(log: bytes) -> None:
        write_stderr(decoder.decode(log))

    return forward
