"""The files of the project before and after a turn, recorded in the chain of its thread.

What was there before is noted beside the run, so that whoever records the turn of a dead engine
finds it. Recording fails no turn.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from uwf_git.commands.agent_run.mask import Secrets, read_secrets
from uwf_git.commands.agent_run.run_checks import agent_environ
from uwf_git.commands.turn.turn import Turn
from uwf_git.commands.worktree.chain import RECORD_FILES, Chain, HasKey, find_chain
from uwf_git.debug_log import debug
from uwf_git.engine.masking import mask_bytes
from uwf_git.errors import UwfError
from uwf_git.store.threads.local_files import SLOW_TO_RECORD, UNRECORDED, note_once

_SLOW_S = 1.0


def record_before(turn: Turn) -> None:
    """Record the files before *turn*, and note their commit beside its run."""
    with _warned(turn):
        chain = _find_chain(turn)
        if chain is not None:
            turn.run_dir.write("before", _record(turn, chain, "before"))


def find_range(turn: Turn, before: str | None) -> str | None:
    """Return the commits of the files *before* and after *turn*; None if it changed none.

    A person's turn has no *before*: it began with the thread's newest record; without one, nobody
    knows how the files were.
    """
    after = None
    with _warned(turn):
        chain = _find_chain(turn)
        if chain is not None and before is None:
            tip = chain.read_tips()[1]
            before = None if tip is None else tip.commit
        if chain is not None and before is not None:
            after = _record(turn, chain, "after", since=before)
    return None if after in {None, before} else f"{before}..{after}"


def _record(turn: Turn, chain: Chain, when: str, *, since: str | None = None) -> str:
    """Return the commit of the files as they are."""
    title = f"{when} {turn.role}, step {turn.present.depth + 1}, attempt {turn.attempt}"
    secrets = read_secrets(turn.run_dir, agent_environ(turn))
    began, worked = time.monotonic(), _read_work_s()
    commit = chain.record(title, turn.started_after, judge_by(secrets), since=since)
    took = time.monotonic() - began
    # On a busy machine all takes long, and nothing is to be said of the project.
    if min(took, 2 * (_read_work_s() - worked)) > _SLOW_S:
        note_once(turn.store, SLOW_TO_RECORD, turn.thread, f"{took:.1f} s".encode())
    return commit


def _read_work_s() -> float:
    """Return the processor time of this process and of the gits that it has run."""
    return sum(os.times()[:4])


def _find_chain(turn: Turn) -> Chain | None:
    """Return where the files of *turn* are recorded; None if they are not."""
    if not turn.store.config.get_flag(RECORD_FILES, default=True):
        return None
    return find_chain(turn.store, turn.thread, turn.environ)


def judge_by(secrets: Secrets) -> HasKey:
    if not secrets.known and secrets.others is None:
        return None
    return lambda content: mask_bytes(content, secrets.find_in(content)) != content


@contextmanager
def _warned(turn: Turn) -> Iterator[None]:
    """Let no failure of recording fail the turn; note the first of a thread for a warning."""
    try:
        yield
    except (UwfError, OSError, ValueError) as error:
        debug("F8MT4QXK", "files not recorded", thread=turn.thread, error=str(error))
        with suppress(OSError):
            reason = str(error).encode(errors="replace")
            note_once(turn.store, UNRECORDED, turn.thread, reason)
