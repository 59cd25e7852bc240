"""`uwf work`."""

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.session.settings import Session
from uwf_git.cli.thread.run import DRIVE_EXITS, DriveOptions, Driving, drive_and_tell
from uwf_git.commands.fleet.claims import POLL_S, TTL_S
from uwf_git.commands.fleet.work import Job, open_worker
from uwf_git.model.names import NotAThreadId
from uwf_git.store.threads.heads import parse_thread_id

_SECONDS = click.FloatRange(min=0.1)
_SECONDS.name = "number of seconds"

ttl_option = click.option(
    "--ttl",
    type=_SECONDS,
    default=TTL_S,
    metavar="SECONDS",
    help="How long a claim is silent before it is dead; the same on every machine.  [default: 60]",
)
poll_option = click.option(
    "--poll",
    type=_SECONDS,
    default=POLL_S,
    metavar="SECONDS",
    help="How often the hub is looked at.  [default: 2]",
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
    "--project", metavar="URL", help="The repository in a clone of which they run, instead."
)
@click.option("--trust", is_flag=True, help="Let the thread's own commands run on this machine.")
@click.option("--wait", is_flag=True, help="Sleep until the end of a usage limit.")
@ttl_option
@poll_option
def command(  # noqa: PLR0913 (its options)
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

    A claim that is there is watched: if it is renewed, another machine is at work and the status
    is 4; if it is not for the time to live, its machine is gone and this one goes on.
    """
    whole = parse_thread_id(thread)
    if whole is None:
        raise NotAThreadId(thread)
    if workdir and project:
        raise click.UsageError("--workdir and --project exclude each other")
    job = Job(hub, whole, ttl, poll, workdir=workdir or "", project=project or "")
    at = open_worker(job, session.environ)
    how = DriveOptions(None, trust, wait, stream=False, background=False, timestamps=False)
    drive_and_tell(session, at.store, Driving(whole, how, workdir=at.workdir, share=at.share))
