"""Check what a remote sent in a child process with limits, as a hub checks a push.

A few kilobytes of JSON can take gigabytes as Python values.
"""

from collections.abc import Callable, Iterator
from itertools import islice

from uwf_git.agents.limited_fork import LimitedRunDied, LimitHit, RunLimits, run_limited
from uwf_git.commands.verify.finding import Finding
from uwf_git.store.objects.json_file import DEFAULT_BLOB_BYTES
from uwf_git.store.remotes.incoming import mapped_bytes
from uwf_git.store.remotes.limits import read_receive_limits
from uwf_git.store.store import Store

_MEMORY_BYTES = 320 * 1024 * 1024
# A larger blob takes this much more, as text, as a document and in canonical form.
_TIMES_A_BLOB = 24
_LARGEST_BLOB = 4 * 1024**3


def first_finding(store: Store, check: Callable[[], Iterator[Finding]]) -> Finding | None:
    """Return the first finding of *check*, which runs in a child; None without any.

    Raises:
        the errors of *check*, as `run_limited` passes them on.
    """
    limits = read_receive_limits(store.config)
    more = min(limits.most_blob_bytes, _LARGEST_BLOB) - DEFAULT_BLOB_BYTES
    memory = _MEMORY_BYTES + _TIMES_A_BLOB * max(more, 0) + mapped_bytes(store.objects)
    try:
        found = run_limited(
            lambda: list(islice(check(), 1)),
            limits=RunLimits(memory, limits.timeout_s, limits.timeout_s),
            what="the check of what came",
        )
    except LimitHit as hit:
        setting = "uwf.maxBlobSize" if hit.facts["limit"] == "memory" else "uwf.receiveTimeout"
        return Finding(hit.message, f"if it is right: `git config --global {setting} NUMBER`")
    except LimitedRunDied as error:
        return Finding(error.message, error.hint or "")
    return Finding(*found[0]) if found else None
