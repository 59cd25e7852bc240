"""`uwf drive` and `uwf work`."""

import os
from collections.abc import Callable
from typing import Any

import click

from uwf_git.cli.app.parameters import Seconds
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import sigterm_as_interrupt, without_password_prompt
from uwf_git.cli.output.screen import emit, note
from uwf_git.cli.remote import confirm_first_push, raise_failure
from uwf_git.cli.session import Session
from uwf_git.cli.thread.run import DRIVE_EXITS, DriveOptions, Driving, drive_and_tell
from uwf_git.commands.fleet.claims import POLL_S, TTL_S
from uwf_git.commands.fleet.drive import Executor, FleetReport, FleetRequest, drive_hub
from uwf_git.commands.fleet.executors import open_executor
from uwf_git.commands.fleet.shared_drive import Done, Job, open_worker
from uwf_git.commands.remote.push import push_remote
from uwf_git.errors import Refused, UwfError
from uwf_git.model.event_folds import count_steps
from uwf_git.model.names import NotAThreadId, ThreadId
from uwf_git.model.text import first_line, visible_line
from uwf_git.store.remotes.remotes import choose_remote, remote_url, shown_url, with_whole_path
from uwf_git.store.store import Store
from uwf_git.store.threads.naming import parse_thread_id

# The clone of the hub on this machine is a cache, and may go with a container.
_TYPED_THERE = "type uwf's commands in a clone of the hub, between `uwf fetch` and `uwf push`"

_POSITIVE_SECONDS = Seconds(min=0.1)

ttl_option = click.option(
    "--ttl",
    type=_POSITIVE_SECONDS,
    default=TTL_S,
    metavar="SECONDS",
    help="The seconds after which a claim that was not renewed counts as dead. Give every machine "
    "the same value.  [default: 60]",
)
poll_option = click.option(
    "--poll",
    type=_POSITIVE_SECONDS,
    default=POLL_S,
    metavar="SECONDS",
    help="The seconds between two looks at the hub.  [default: 2]",
)


@verb(
    "uwf work 01J7K9M2XNPQR5VWBCDF8G3H4T --hub https://example.org/threads.git",
    "uwf work 01J7K9M2XNPQR5VWBCDF8G3H4T --hub /srv/threads.git --workdir ~/src/app --trust",
    exits={**DRIVE_EXITS, 4: "another machine has claimed the thread, or went on with it"},
)
@click.argument("thread")
@click.option("--hub", required=True, metavar="URL", help="The repository that has the thread.")
@click.option(
    "--workdir",
    metavar="PATH",
    help="Where its agents run.  [default: a directory of the thread's own, below ~/.uwf/work]",
)
@click.option(
    "--project", metavar="URL", help="Run agents in a clone of this repository; not with --workdir."
)
@click.option("--trust", is_flag=True, help="Let the thread's own commands run on this machine.")
@click.option("--wait", is_flag=True, help="Sleep until the end of a usage limit.")
@ttl_option
@poll_option
def work_command(  # noqa: PLR0913 (its options)
    session: Session,
    *,
    thread: str,
    hub: str,
    workdir: str | None,
    project: str | None,
    trust: bool,
    wait: bool,
    ttl: float,
    poll: float,
) -> None:
    """Run one thread of a hub on this machine, until it stops.

    For a job of Kubernetes or Slurm, CI or cron: the thread is claimed, so that no other machine
    runs it meanwhile, fetched, driven as by `uwf thread run`, and each step is pushed before the
    next one. The clone of the hub is kept in ~/.uwf/hubs.

    An existing claim is watched. If another machine renews it, that machine is at work, and the
    status is 4. If nobody renews it for --ttl seconds, this machine takes the thread over.
    """
    whole = parse_thread_id(thread)
    if whole is None:
        raise NotAThreadId(thread)
    if workdir and project:
        raise click.UsageError("--workdir and --project exclude each other")
    hub, project = _whole(session, hub), _whole(session, project)
    job = Job(hub, whole, ttl, poll, workdir=workdir or "", project=project)
    store, where, share = open_worker(job, session.environ)
    how = DriveOptions(trust=trust, wait=wait)
    try:
        drive_and_tell(session, store, Driving(whole, how, workdir=where, share=share))
    except UwfError as error:
        if error.code in {"agent-not-trusted", "check-not-trusted"}:
            # Its own hint would step the clone, which other machines do not see.
            error.hint = "read it; if it may run here, add --trust to this command"
        elif error.hint and "`uwf thread " in error.hint:
            error.hint += f"; {_TYPED_THERE}"
        raise
    note(_TYPED_THERE)


@verb(
    "uwf drive",
    "uwf drive 01J7K9M2 --on local:8",
    "uwf drive --on tls://head.example.org:8786 --workdir /srv/app",
    exits={
        1: "the hub or the scheduler cannot be reached, or a thread could not be driven",
        3: "an agent failed",
    },
)
@click.argument("threads", nargs=-1, metavar="[THREAD]...")
@click.option(
    "--on",
    "address",
    metavar="ADDRESS",
    default="local:4",
    help="Where: local:N, as many processes here; tls://HOST:PORT or tcp://…, a Dask scheduler; "
    "MODULE:FUNCTION that returns an executor or a Dask client.  [default: local:4]",
)
@click.option("--remote", metavar="NAME", help="The hub.  [default: the only remote, or origin]")
@click.option(
    "--hub", metavar="URL", help="The hub's URL for other machines.  [default: that of the remote]"
)
@click.option("--workdir", metavar="PATH", help="Where agents run: the same path on every machine.")
@click.option(
    "--project",
    metavar="URL",
    help="The repository of which each thread has a clone on its machine; its files travel along. "
    "Not with --workdir.",
)
@click.option(
    "--base",
    metavar="COMMIT",
    help="The commit of the project with which threads begin.  [default: its HEAD]",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    default=1000,
    help="How many tasks are submitted at once; to local:N at most 2N.  [default: 1000]",
)
@click.option("--trust", is_flag=True, help="Let the commands of all these threads run.")
@click.option("--wait", is_flag=True, help="Go on after the end of usage limits.")
@click.option("--follow", is_flag=True, help="Wait for new work when nothing can go on.")
@click.option("--insecure", is_flag=True, help="Allow tcp:// to a scheduler on another machine.")
@ttl_option
@poll_option
def command(session: Session, *, threads: tuple[str, ...], address: str, **how: Any) -> None:
    """Run what can go on at a hub, on many machines.

    Drives every thread of the hub, or the named threads and their branches, until none of them can
    go on. Each task claims one thread, runs it on one machine until it stops, and pushes each step;
    branches run on different machines. The driver may be killed and started again, or run twice:
    the hub knows which machine runs which thread.

    Only commands that are trusted here are sent. To pause, kill, patch or answer, use any clone;
    `uwf push` brings the change to the machine at work.
    """
    store = session.open_store()
    remote = choose_remote(store.config, how["remote"])
    if how["workdir"] and how["project"]:
        raise click.UsageError("--workdir and --project exclude each other")
    url = _without_secret(how["hub"] or remote_url(store, remote).text)
    workdir = _find_workdir(session, how["workdir"])
    project = _without_secret(_whole(session, how["project"]))
    job = Job(url, "", how["ttl"], how["poll"], "", workdir, project, how["base"] or "")
    if threads:
        # Of others only those are pushed that the hub has.
        confirm_first_push(session, store, remote.name, threads)
    request = FleetRequest(
        job, remote.name, threads, how["jobs"], how["trust"], how["wait"], how["follow"]
    )
    with sigterm_as_interrupt(), open_executor(address, insecure=how["insecure"]) as executor:
        _drive(session, store, executor, request)


def drive_begun(
    session: Session,
    begin: Callable[[], tuple[Store, ThreadId]],
    how: DriveOptions,
    *,
    address: str,
    workdir: str | None,
) -> None:
    """Begin a thread once *address* is open, push it, and drive it and its branches there."""
    known = session.open_store()
    remote = choose_remote(known.config, None)
    url = _without_secret(remote_url(known, remote).text)
    with sigterm_as_interrupt(), open_executor(address, insecure=False) as executor:
        store, thread = begin()
        confirm_first_push(session, store, remote.name, [thread])
        pushed = push_remote(store, without_password_prompt(session), remote.name, [thread])
        raise_failure(pushed.failure())
        job = Job(url, "", TTL_S, POLL_S, workdir=_find_workdir(session, workdir))
        request = FleetRequest(job, remote.name, (thread,), trust=how.trust, wait=how.wait)
        _drive(session, store, executor, request)


def _find_workdir(session: Session, path: str | None) -> str:
    return os.path.join(session.cwd, os.path.expanduser(path)) if path else ""


def _whole(session: Session, url: str | None) -> str:
    return with_whole_path(url, relative_to=session.cwd) if url else ""


def _without_secret(url: str) -> str:
    if shown_url(url) != url:
        raise Refused(
            f"{shown_url(url)} has a password in it, and would be sent to every machine",
            code="secret-in-task",
            hint="name it without one, as by --hub, and let git's credential helpers have it",
        )
    return url


def _drive(session: Session, store: Store, executor: Executor, request: FleetRequest) -> None:
    report = FleetReport(
        on_moved=lambda thread, subject: note(f"{thread} {visible_line(subject)}"),
        on_done=_tell_done,
        on_refused=lambda thread, why: note(f"{thread} was not submitted: {visible_line(why)}"),
    )
    end = drive_hub(store, without_password_prompt(session), executor, request, report)
    if end.unpushed:
        note(f"{end.remote} does not have {end.unpushed} of this store's threads: `uwf push` first")
    document = end._asdict()
    del document["unpushed"], document["refused"]
    document["takenOver"] = document.pop("taken_over")
    emit(session, document)
    if "failed" in end.threads:
        raise click.exceptions.Exit(3)
    if end.refused:
        raise click.exceptions.Exit(1)


def _tell_done(done: Done) -> None:
    if done.stopped in {"end", "split", "max-steps"}:
        # Its commits say so.
        return
    said = f": {visible_line(first_line(done.said))}" if done.said else ""
    where = f"{done.host} " if done.host else ""
    note(f"{where}{done.thread} {done.stopped} after {count_steps(done.steps)}{said}")
