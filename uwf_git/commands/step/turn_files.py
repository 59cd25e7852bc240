"""The files of the project before and after a turn, recorded in the chain of its thread.

What was there before is noted beside the run, so that whoever records the turn of a dead engine
finds it. Recording fails no turn.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from uwf_git.commands.agent_run.mask import Secrets, read_secrets
from uwf_git.commands.agent_run.run_checks import agent_environ
from uwf_git.commands.turn.turn import Turn
from uwf_git.commands.worktree.chain import RECORD_FILES, HasKey, find_chain
from uwf_git.debug_log import debug
from uwf_git.engine.masking import mask_bytes
from uwf_git.errors import UwfError
from uwf_git.store.threads.local_files import UNRECORDED, note_once


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


def _record(turn: Turn, when: str, *, since: str | None = None) -> str | None:
    if not turn.store.config.get_flag(RECORD_FILES, default=True):
        return None
    chain = find_chain(turn.store, turn.thread, turn.environ)
    if chain is None:
        return None
    title = f"{when} {turn.role}, step {turn.present.depth + 1}, attempt {turn.attempt}"
    secrets = read_secrets(turn.run_dir, agent_environ(turn))
    return chain.record(title, turn.started_after, judge_by(secrets), since=since)


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
