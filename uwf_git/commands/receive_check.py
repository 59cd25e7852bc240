"""Before a push: what git's pre-receive hook does.

Owns: judging a push behind a fence, in the quarantine. Knows nothing of: standard streams.
Always true: what cannot be judged is refused. The fence is there because whoever may push could
else keep the server busy for ever with one regular expression, or fill its memory.
"""

from collections.abc import Mapping, Sequence

from uwf_git.agents.fence import FencedBug, FenceLimits, run_fenced
from uwf_git.commands.receive_limits import read_limits
from uwf_git.commands.receive_rules import check_received
from uwf_git.commands.ref_update import RefUpdate, Refusal
from uwf_git.store.quarantine import mapped_bytes, open_received

_MEMORY_BYTES = 1024**3
# A blob as text, as a document and in canonical form, at several times its size each.
_TIMES_A_BLOB = 24
_LARGEST_BLOB = 4 * _MEMORY_BYTES


class CheckBroken(Exception):
    """A bug of ours came to light behind the fence; its trace is that of the cause."""


def check_push(
    git_dir: str, environ: Mapping[str, str], updates: Sequence[RefUpdate]
) -> list[Refusal]:
    """Give what is wrong with the push that git has put in quarantine; nothing if it may go on.

    Raises:
        NotAStore, UnsupportedRepository, BadConfig, BadLimit: nothing can be judged here.
        FenceHit: it took too much time or memory.
        CheckBroken: there is a bug in the checks.
    """
    store = open_received(git_dir, environ)
    limits = read_limits(store.config)
    largest = min(limits.most_blob_bytes, _LARGEST_BLOB)
    memory = _MEMORY_BYTES + _TIMES_A_BLOB * largest + mapped_bytes(store.objects)
    try:
        told = run_fenced(
            lambda: check_received(store, updates),
            limits=FenceLimits(memory, limits.timeout_s, limits.timeout_s),
            what="the check of this push",
        )
    except FencedBug as bug:
        # Whoever pushes reads one line; the trace goes into the server's crash log.
        raise CheckBroken("the check of this push broke down") from bug
    return [Refusal(*each) for each in told]
