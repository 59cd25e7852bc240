"""The guard: turn every exception into a message on standard error and an exit status.

`run_guarded` always returns, and no traceback is shown. It does not need click.
"""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING

from uwf_git.cli.session import ReaderGone, hold_standard_streams
from uwf_git.surroundings import Lazy

if TYPE_CHECKING:
    from uwf_git.cli import caller
    from uwf_git.cli.app import failure as failure  # noqa: PLC0414 (others import it from here)
else:
    caller = Lazy("uwf_git.cli.caller")  # process 1 alone
    failure = Lazy("uwf_git.cli.app.failure")  # imports click: 10 ms; few commands need it

READER_GONE = 141
"""What a shell shows when a broken pipe ended a program: 128 + SIGPIPE, as for git."""


def run_guarded(
    work: Callable[[], int], *, environ: Mapping[str, str], as_json: Callable[[], bool]
) -> int:
    """Call *work*, which returns the exit status of the process, and report what it raises."""
    hold_standard_streams()
    # Reading and printing nested nodes takes frames per level.
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 5000))
    try:
        # The kernel drops what process 1 has no handler for.
        with caller.sigterm_as_interrupt() if os.getpid() == 1 else nullcontext():
            return work()
    except ReaderGone:
        return READER_GONE
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 (this is the boundary)
        described = failure.describe_failure(error, environ)
        failure.tell(described, as_json=as_json(), environ=environ)
        return described.exit_status
