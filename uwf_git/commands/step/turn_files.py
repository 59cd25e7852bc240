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
        commit = _record(turn, "before")
        if commit is not None:
            turn.run_dir.write_before(commit)


def find_range(turn: Turn, before: str) -> str | None:
    """Return the commits of the files *before* and after *turn*; None if it changed none."""
    after = None
    with _warned(turn):
        after = _record(turn, "after", since=before)
    return None if after in {None, before} else f"{before}..{after}"


def find_answer_range(turn: Turn) -> str | None:
    """Return the commits of the files before and after a person's *turn*; None if none changed.

    It began with the newest record of the thread; without one, nobody knows how the files were.
    """
    before = None
    with _warned(turn):
        chain = _find_chain(turn)
        before = None if chain is None else chain.read_tips()[1]
    return None if before is None else find_range(turn, before.commit)


def _record(turn: Turn, when: str, *, since: str | None = None) -> str | None:
    """Return the commit of the files as they are; None if those of the turn are not recorded."""
    chain = _find_chain(turn)
    if chain is None:
        return None
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
