"""pre-receive: judge a push in git's quarantine, in a child process with limits.

A push that cannot be judged is refused. The limits keep a push from occupying the server for ever
with one regular expression, or from filling its memory.
"""

from collections.abc import Mapping, Sequence

from uwf_git.agents.limited_fork import LimitedRunBug, RunLimits, run_limited
from uwf_git.commands.receive.ref_update import RefUpdate, Refusal
from uwf_git.commands.receive.rules import check_received
from uwf_git.store.remotes.incoming import mapped_bytes, open_received
from uwf_git.store.remotes.limits import read_receive_limits

_MEMORY_BYTES = 1024**3
# A blob is held as text, as a document and in canonical form, each several times its size.
_TIMES_A_BLOB = 24
_LARGEST_BLOB = 4 * _MEMORY_BYTES


class CheckBroken(Exception):
    """The checks have a bug; the trace is that of the cause."""


def check_push(
    git_dir: str, environ: Mapping[str, str], updates: Sequence[RefUpdate]
) -> list[Refusal]:
    """Return why the push in git's quarantine is refused; an empty list accepts it.

    Raises:
        NotAStore, Refused, BadConfig: the store cannot be used.
        LimitHit: the check took too much time or memory.
        CheckBroken: the checks have a bug.
    """
    store = open_received(git_dir, environ)
    limits = read_receive_limits(store.config)
    largest = min(limits.most_blob_bytes, _LARGEST_BLOB)
    memory = _MEMORY_BYTES + _TIMES_A_BLOB * largest + mapped_bytes(store.objects)
    try:
        told = run_limited(
            lambda: check_received(store, updates),
            limits=RunLimits(memory, limits.timeout_s, limits.timeout_s),
            what="the check of this push",
        )
    except LimitedRunBug as bug:
        # The pusher gets one line; the trace goes into the server's crash log.
        raise CheckBroken("the check of this push broke down") from bug
    return [Refusal(*each) for each in told]
