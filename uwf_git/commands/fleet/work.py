"""One task of many machines: run one thread of a hub in this machine's clone of it, until it stops.

The clone lies at `~/.uwf/hubs/<digest of the URL>.git`, is made at first use, and is a cache: it
holds the threads that ran here. What a driver sends is a ``Job`` of plain values, without secrets;
what comes back is advice, the hub's refs are the truth.
"""

import hashlib
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.caller import Caller
from uwf_git.commands.drive.drive_thread import Driven, DriveRequest, Watcher
from uwf_git.commands.fleet.shared_drive import Project, Share, hold_shared_drive
from uwf_git.commands.remote.fetch import ORIGIN
from uwf_git.commands.step.step_thread import StepRequest
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.errors import BadUsage, Refused, UwfError
from uwf_git.model.names import ThreadId, build_thread_id
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.remotes import add_remote, list_remotes
from uwf_git.store.store import Store, create_store, open_store


class Job(NamedTuple):
    hub: str
    """The URL of the hub, as each machine reaches it."""

    thread: str
    ttl_s: float
    poll_s: float
    over: str = ""
    """The dead claim to take over; empty: none."""

    workdir: str = ""
    """The directory of its agents on each machine; empty: one of its own."""

    project: str = ""
    """The URL of the repository in a clone of which they work; empty: none."""

    base: str = ""
    """The project's commit with which a thread begins; empty: its HEAD."""

    around: tuple[str, ...] = ()
    """The threads around it, the nearest first."""

    allowed: tuple[str, ...] = ()
    """What may run beside what the worker's own list trusts: payloads as JSON."""

    max_steps: int = 0
    """The most steps of the run; 0: no limit."""


class Done(NamedTuple):
    thread: str
    host: str
    stopped: str
    """As ``Driven.stopped``; or the code of the error that ended it."""

    steps: int = 0
    said: str = ""


def run_thread(job: Job) -> Done:
    """Run *job* on this machine; what ends it is told, and never raised."""
    environ = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    host = socket.gethostname()
    try:
        at = open_worker(job, environ)
        caller = Caller(_now_ms, environ, at.workdir)
        choice = Choice(default=environ.get("UWF_AGENT"), allowed=frozenset(job.allowed))
        step = StepRequest(job.thread, agent_player(None), choice, at.workdir)
        request = DriveRequest(step, job.max_steps or None, is_branch=True, may_do_nothing=True)
        with hold_shared_drive(at.store, caller, request, share=at.share, watcher=_SILENT) as drive:
            driven: Driven = drive.run()
    except UwfError as error:
        return Done(job.thread, host, error.code, said=error.message)
    said = driven.failure.message if driven.failure is not None else driven.last.said
    return Done(job.thread, host, driven.stopped, driven.steps, said)


class Worker(NamedTuple):
    """Where a job runs on this machine."""

    store: Store
    workdir: str
    share: Share


def open_worker(job: Job, environ: Mapping[str, str]) -> Worker:
    """Open this machine's clone of the hub, and find where the agents of *job* run."""
    thread, around = ThreadId(job.thread), tuple(ThreadId(each) for each in job.around)
    home = environ.get("HOME")
    if not home:
        raise BadUsage(
            "there is no $HOME to keep the clone of the hub in",
            code="no-home-for-hubs",
            hint="set HOME",
        )
    folder = os.path.join(home, ".uwf")
    share = Share(ORIGIN, job.ttl_s, job.poll_s, Oid(job.over) if job.over else None, _new_id)
    workdir = job.workdir
    if job.project:
        project = Project(job.project, job.base, thread, around, folder, environ)
        share, workdir = share._replace(project=project), project.workdir
    elif not workdir:
        workdir = os.path.join(folder, "work", thread)
        os.makedirs(workdir, exist_ok=True)
    return Worker(_open_clone(job.hub, folder, environ), workdir, share)


def _open_clone(hub: str, folder: str, environ: Mapping[str, str]) -> Store:
    digest = hashlib.sha256(hub.encode()).hexdigest()[:16]
    path = os.path.join(folder, "hubs", f"{digest}.git")
    store = create_store(path, environ=environ)
    if not any(each.name == ORIGIN for each in list_remotes(store.config)):
        # Another worker of this machine may do the same.
        with suppress(Refused):
            add_remote(store, ORIGIN, hub, cwd=os.getcwd())
        store = open_store(path, environ=environ)
    return store


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _new_id() -> ThreadId:
    return build_thread_id(_now_ms(), os.urandom(10))


def _nothing(*_what: Any) -> None:
    return None


_SILENT = Watcher(_nothing, _nothing, _nothing)
