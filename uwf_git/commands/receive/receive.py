"""The hooks of a hub: judge a push in quarantine, then announce it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from uwf_git.agents.command_line import split_command
from uwf_git.agents.limited_fork import LimitedRunBug, RunLimits, run_limited
from uwf_git.commands.receive.ref_update import RefUpdate, Refusal
from uwf_git.commands.receive.rules import check_received
from uwf_git.engine.events import tell_record
from uwf_git.errors import UwfError, name_some
from uwf_git.model.names import ThreadId, is_thread_id
from uwf_git.store.git.program import run_program
from uwf_git.store.objects.walk import descends
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.incoming import mapped_bytes, open_received
from uwf_git.store.remotes.limits import read_receive_limits
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.snapshot import Snapshot

# pre-receive: judge a push in git's quarantine, in a child process with limits.
#
# A push that cannot be judged is refused. The limits keep a push from occupying the server for
# ever with one regular expression, or from filling its memory.

_MEMORY_BYTES = 1024**3
# A blob is held as text, as a document and in canonical form, each several times its size.
_TIMES_A_BLOB = 24
_LARGEST_BLOB = 4 * _MEMORY_BYTES


def check_push(
    git_dir: str, environ: Mapping[str, str], updates: Sequence[RefUpdate]
) -> list[Refusal]:
    """Return why the push in git's quarantine is refused; an empty list accepts it."""
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
        raise RuntimeError("the check of this push broke down") from bug
    return [Refusal(*each) for each in told]


# post-receive: announce the transitions of a push, and delete active refs beside their archives.
#
# The push is done; nothing here can undo it or make it fail. Each transition is announced once,
# the oldest first.

ON_RECEIVE = "uwf.onReceive"

_TIMEOUT_S = 30.0
_MS = 1000


class _Moved(NamedTuple):
    thread: ThreadId
    ref: str
    tip: Oid
    known: Oid | None
    """Its commit before the push; None if the thread is new here."""


def announce_push(
    store: Store, updates: Sequence[RefUpdate], environ: Mapping[str, str]
) -> list[str]:
    """Clean up, and run ``uwf.onReceive`` with JSON lines for 30 s; return warnings."""
    moved = list(_moved_threads(store, updates))
    warnings = [*_delete_archived(store, moved)]
    command = store.config.get(ON_RECEIVE)
    if command and moved:
        warnings += _announce(store, moved, command, environ)
    return warnings


def _moved_threads(store: Store, updates: Sequence[RefUpdate]) -> Iterator[_Moved]:
    """Yield each thread once, whether one of its refs was changed or both."""
    by_name = {update.name: update for update in updates}
    for name, update in by_name.items():
        thread = name.removeprefix(ACTIVE).removeprefix(ARCHIVE)
        if update.new is None or not is_thread_id(thread):
            continue
        active = by_name.get(ACTIVE + thread)
        if name == ARCHIVE + thread:
            known = store.refs.find(ACTIVE + thread) if active is None else active.old
            yield _Moved(ThreadId(thread), name, update.new, known)
        elif name == ACTIVE + thread and ARCHIVE + thread not in by_name:
            yield _Moved(ThreadId(thread), name, update.new, update.old)


def _delete_archived(store: Store, moved: Sequence[_Moved]) -> Iterator[str]:
    """Delete active refs beside their archives, which a plain `git push` leaves."""
    going: dict[str, tuple[Oid | None, Oid | None]] = {}
    for each in moved:
        ref = ACTIVE + each.thread
        try:
            active = store.refs.find(ref) if each.ref.startswith(ARCHIVE) else None
            is_left = active is not None and descends(store.objects, each.tip, active)
        except UwfError as error:
            yield f"{ref} could not be removed beside its archive: {error}"
            continue
        if is_left:
            going[ref] = (active, None)
        elif active is not None:
            # Another push moved it between the check and the end of this one.
            yield (
                f"thread {each.thread} is archived at {each.tip}, and {ref} "
                f"is kept beside it: the archive does not descend from {active}"
            )
    try:
        gone = store.refs.change(going)
    except (UwfError, OSError) as error:
        yield f"{name_some(list(going))} could not be removed beside the archive: {error}"
    else:
        for ref in going.keys() - gone:
            yield f"{ref} moved before it could be removed beside its archive"


def _announce(
    store: Store, moved: Sequence[_Moved], command: str, environ: Mapping[str, str]
) -> Iterator[str]:
    try:
        lines = [line for each in moved for line in _lines(store, each)]
        given = "".join(line + "\n" for line in lines).encode()
        argv = split_command(command)
        ran = run_program(argv, environ, given=given, timeout_s=_TIMEOUT_S)
    except (UwfError, OSError) as error:
        yield f"{ON_RECEIVE}: {error}"
        return
    if ran.status != 0:
        yield f"{ON_RECEIVE}: {argv[0]} ended with status {ran.status}: {ran.last_line}"


def _lines(store: Store, moved: _Moved) -> list[str]:
    lines: list[str] = []
    for snapshot in walk_history(store, moved.tip):
        if snapshot.commit.oid == moved.known:
            break
        lines.append(json.dumps(view_transition(snapshot, moved.ref)))
    return lines[::-1]


def view_transition(snapshot: Snapshot, ref: str) -> dict[str, Any]:
    """Return the JSON document of one transition for ``uwf.onReceive``."""
    record = snapshot.record
    return {
        "event": record.event,
        "thread": record.thread,
        **tell_record(record),
        "commit": snapshot.commit.oid,
        "subject": snapshot.subject,
        "time": snapshot.commit.time_s * _MS,
        "ref": ref,
    }
