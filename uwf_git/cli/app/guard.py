"""The guard: turn every exception into a message on standard error and an exit status.

`run_guarded` always returns, and no traceback is shown. It does not need click.
"""

import sys
from collections.abc import Callable, Mapping
from types import ModuleType

from uwf_git.cli.session import ReaderGone, hold_standard_streams
from uwf_git.errors import Failure

READER_GONE = 141
"""What a shell shows when a broken pipe ended a program: 128 + SIGPIPE, as for git."""

_FRAMES = 5000


def run_guarded(
    work: Callable[[], int], *, environ: Mapping[str, str], as_json: Callable[[], bool]
) -> int:
    """Call *work*, which returns the exit status of the process, and report what it raises."""
    hold_standard_streams()
    # Reading and printing nested nodes takes frames per level.
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES))
    try:
        return work()
    except ReaderGone:
        return READER_GONE
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 (this is the boundary)
        failures = load_failures()
        failure: Failure = failures.describe_failure(error, environ)
        failures.tell(failure, as_json=as_json(), environ=environ)
        return failure.exit_status


def load_failures() -> ModuleType:
    """Return `failure.py`, which imports click, and which few commands need."""
    from uwf_git.cli.app import failure  # noqa: PLC0415 (10 ms)

    return failure
