"""The guard: where every exception ends, as words on standard error and an exit status.

Owns: what holds around a program, whichever way it reads its words.
Knows nothing of: commands, click; how a failure is described or told.
Always true: `run_guarded` returns, and nobody sees a traceback.
"""

import sys
from collections.abc import Callable, Mapping

from uwf_git.cli.streams import ReaderGone, hold_standard_streams

READER_GONE = 141
"""What a shell shows for git, and for every filter, when a broken pipe ended it: 128 + SIGPIPE."""

_FRAMES = 5000


def run_guarded(
    work: Callable[[], int], *, environ: Mapping[str, str], as_json: Callable[[], bool]
) -> int:
    """Do *work*, which gives the exit status of the process, and tell what it raises."""
    hold_standard_streams()
    _let_documents_nest()
    try:
        return work()
    except ReaderGone:
        return READER_GONE
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 (this is the boundary)
        # Click comes with them, which not every program here has loaded.
        from uwf_git.cli.failure import describe  # noqa: PLC0415 (see above)
        from uwf_git.cli.report import tell  # noqa: PLC0415 (see above)

        failure = describe(error, environ)
        tell(failure, as_json=as_json())
        return failure.exit_status


def _let_documents_nest() -> None:
    """Make room for values as deep as nodes may hold: reading and printing takes frames a level."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES))
