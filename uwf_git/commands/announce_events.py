"""Announcing events: what this process has done to threads is told to a command.

Owns: running the command in git config ``uwf.onEvent``, once for each event.
Knows nothing of: who asks for it, when; what a fetch brings, which its maker has told of
(``uwf.onReceive`` tells of what is pushed into a shared store).
Always true: it comes after the commit, and nothing here undoes or fails what is done. One event
after the other, in order; a command that cannot be run, or hangs, is not tried again at once.
"""

import json
from collections.abc import Mapping
from typing import Any

from uwf_git.agents.command_line import split_command
from uwf_git.commands.thread_events import Telling, read_events
from uwf_git.engine.masking import find_secrets
from uwf_git.errors import UwfError
from uwf_git.store.program import run_listener
from uwf_git.store.refs import Oid
from uwf_git.store.store import Store

ON_EVENT = "uwf.onEvent"

TIMEOUT_S = 10.0


def announce_events(
    store: Store, environ: Mapping[str, str], *, timeout_s: float = TIMEOUT_S
) -> str | None:
    """Tell the command of what was done through *store* since the last time.

    It gets one event as JSON on its standard input, ``UWF_REPO`` in its environment, and stands
    in the store's directory.

    Returns:
        What did not work, in one line; None if all did, or nobody listens.
    """
    moved = [] if store.moves is None else store.moves.take()
    command = store.config.get(ON_EVENT)
    if not command or not moved or not store.is_kept:
        return None
    told = {**environ, "UWF_REPO": store.path}
    problems: list[str] = []
    left = 0
    try:
        argv = split_command(command)
        events = [event for commit in moved for event in _read(store, commit, environ)]
        left = len(events)
        for event in events:
            given = json.dumps(event).encode() + b"\n"
            ran = run_listener(argv, told, given=given, cwd=store.path, timeout_s=timeout_s)
            left -= 1
            if ran.status != 0:
                said = f": {ran.last_line}" if ran.last_line else ""
                problems.append(f"{argv[0]} ended with status {ran.status}{said}")
    except (UwfError, OSError) as error:
        problems.append(str(error))
    return _account(problems, left - 1)


def _read(store: Store, commit: Oid, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    return read_events(store, commit, Telling(secrets=find_secrets(environ)))


def _account(problems: list[str], untold: int) -> str | None:
    if not problems:
        return None
    more = f" (and {len(problems) - 1} more like it)" if len(problems) > 1 else ""
    rest = f"; {untold} more events were not told" if untold > 0 else ""
    return f"{ON_EVENT}: {problems[0]}{more}{rest}"
