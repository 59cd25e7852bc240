"""The runs of a thread that are not recorded yet: who plays them, which have finished."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.agents.command_line import agent_name
from uwf_git.agents.run_files import RunAlive, RunFinished, RunState, read_run_state
from uwf_git.agents.stop_run import is_left_behind
from uwf_git.commands.turn.turn import Turn
from uwf_git.model.event_words import first_line
from uwf_git.model.names import NodeHash, ThreadId, is_node_hash
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.run_dir import (
    RunDir,
    get_run_dir,
    has_runs,
    is_empty_and_removed,
    list_run_dirs,
    remove_runs,
)


def read_state(run: RunDir) -> RunState:
    """Return the state of a run, taking its lock for a moment.

    The caller holds the thread's lock, or knows that the engine of the run is dead.
    """
    with run.hold_alive() as alive:
        return read_found_state(run, is_held=alive is None)


def read_found_state(run: RunDir, *, is_held: bool) -> RunState:
    """Return the state of a run whose lock was found held or free, as ``read_state`` does.

    An agent that was killed may leave a daemon that holds the lock for ever.
    """
    state = read_run_state(run.path, alive_is_held=is_held)
    if isinstance(state, RunAlive) and is_left_behind(run.path, run.alive):
        # The agent may have written its exit status meanwhile.
        return read_run_state(run.path, alive_is_held=False)
    return state


def is_finished(run: RunDir) -> bool:
    """Return whether the agent of a run has ended with an exit status."""
    # The lock does not matter then: a daemon may hold it.
    return isinstance(read_run_state(run.path, alive_is_held=False), RunFinished)


def is_left(run: RunDir) -> bool:
    """Return whether another engine would find the answer of an agent in *run*."""
    return is_finished(run) or bool(run.read_report())


def list_finished_runs(store: Store, thread: ThreadId) -> list[Oid]:
    """List the commits of *thread* after which an agent has finished and is not recorded."""
    return [run.commit for run in list_run_dirs(store, thread) if is_finished(run)]


def forget_run(store: Store, thread: ThreadId, started_after: Oid) -> None:
    """Remove the run that began after a commit: it has been recorded.

    Work that began after another commit stays: its engine died and the ref was moved without the
    thread's lock (a plain `git push` into this store), so it may exist nowhere else.
    """
    if has_runs(store, thread):
        # A function of this process leaves none.
        get_run_dir(store, thread, started_after).remove()
        forget_recorded_runs(store, thread)


def forget_recorded_runs(store: Store, thread: ThreadId) -> None:
    """Remove all runs of a thread, unless one is at work, or has finished and is not recorded."""
    if not is_empty_and_removed(store, thread) and not any(
        isinstance(read_state(run), RunFinished | RunAlive) for run in list_run_dirs(store, thread)
    ):
        remove_runs(store, thread)


class BegunTurn(NamedTuple):
    """The turn of a run, as its directory names it."""

    role: str
    agent: NodeHash
    """The name of its AgentConfig."""

    program: str
    payload: Mapping[str, Any]
    """The payload of its AgentConfig."""

    at: str | None = None
    """The place of a flow that it plays."""


def describe_turn(turn: Turn) -> str:
    """Return the text by which the run directory names a turn.

    One line, the agent as JSON, and of a flow the place.
    """
    payload = turn.agent.payload
    line = f"{turn.role} {turn.agent.hash} {first_line(agent_name(payload['command']))}"
    place = "" if turn.at is None else f"{turn.at}\n"
    return f"{line}\n{json.dumps(payload)}\n{place}"


def read_begun_turn(run: RunDir) -> BegunTurn | None:
    """Return which turn a run belongs to; None if there is none, or it is not readable."""
    line, _, rest = run.read_turn().partition("\n")
    document, _, place = rest.partition("\n")
    role, _, rest = line.partition(" ")
    name, _, program = rest.partition(" ")
    try:
        payload = json.loads(document)
    except ValueError:
        return None
    if not role or not is_node_hash(name) or not isinstance(payload, dict):
        return None
    return BegunTurn(role, NodeHash(name), program, payload, place.strip() or None)


def is_run_of(turn: Turn) -> bool:
    """Return whether the run in the directory of *turn* was begun by such a turn."""
    begun = read_begun_turn(turn.run_dir)
    if begun is None:
        return False
    return (begun.role, begun.agent, begun.at) == (turn.role, turn.agent.hash, turn.at)


def find_player(run: RunDir) -> tuple[str | None, str | None]:
    """Return role and agent name of a run, each None if it is unknown."""
    # That of a check has no agent.
    role, _, rest = run.read_turn().partition("\n")[0].partition(" ")
    return role or None, rest.partition(" ")[2] or None
