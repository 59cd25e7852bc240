"""Announce events: run the listener of git config `uwf.onEvent` for each event of this process.

Events are announced in order, after the commit. Fetched transitions are not announced; the process
that made them has done that. A listener that the store's own config names runs only if the user
trusts it, as `uwf config set` does. (`uwf.onReceive` announces pushes into a shared store.)
"""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from uwf_git.agents.command_line import split_command
from uwf_git.commands.events.commit_events import EventOptions, read_events
from uwf_git.engine.masking import find_secrets
from uwf_git.errors import UwfError
from uwf_git.store.git.program import run_listener
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.trust import describe_command, is_set_by_store, is_trusted

ON_EVENT = "uwf.onEvent"

TIMEOUT_S = 10.0


def announce_events(
    store: Store, environ: Mapping[str, str], *, timeout_s: float = TIMEOUT_S
) -> str | None:
    """Run the listener for each event of the transitions made through *store* since the last call.

    It gets one event as JSON on standard input and ``UWF_REPO`` in its environment, and runs in the
    store's directory. A listener that cannot be run, or hangs, is not run again in this call.
    Return in one line what went wrong; None without a failure or a listener.
    """
    moved = [] if store.own_transitions is None else store.own_transitions.take()
    command = store.config.get(ON_EVENT)
    if not command or not moved:
        return None
    listener = describe_command(ON_EVENT, command)
    if is_set_by_store(store, ON_EVENT) and not is_trusted(store, listener, store.path):
        return (
            f"{ON_EVENT}: this store's config names a command that is not trusted: {command}; "
            f"read it; if it may run: `uwf config set onEvent {shlex.quote(command)}`"
        )
    listener_environ = {**environ, "UWF_REPO": store.path}
    problems: list[str] = []
    left = 0
    try:
        argv = split_command(command)
        events = [event for commit in moved for event in _read(store, commit, environ)]
        left = len(events)
        for event in events:
            given = json.dumps(event).encode() + b"\n"
            ran = run_listener(
                argv, listener_environ, given=given, cwd=store.path, timeout_s=timeout_s
            )
            left -= 1
            if ran.status != 0:
                detail = f": {ran.last_line}" if ran.last_line else ""
                problems.append(f"{argv[0]} ended with status {ran.status}{detail}")
    except (UwfError, OSError) as error:
        problems.append(str(error))
    return _summarize(problems, left - 1)


def _read(store: Store, commit: Oid, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    return read_events(store, commit, EventOptions(secrets=find_secrets(environ)))


def _summarize(problems: list[str], unannounced: int) -> str | None:
    if not problems:
        return None
    more = f" (and {len(problems) - 1} more like it)" if len(problems) > 1 else ""
    rest = f"; {unannounced} more events were not announced" if unannounced > 0 else ""
    return f"{ON_EVENT}: {problems[0]}{more}{rest}"
