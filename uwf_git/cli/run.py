"""`uwf run`."""

import click

from uwf_git.cli.app.parameters import Input
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.screen import note
from uwf_git.cli.session import Session
from uwf_git.cli.thread.run import DRIVE_EXITS, DriveOptions, Driving, drive_and_tell, drive_options
from uwf_git.cli.thread.start import begin_thread, note_found, start_options
from uwf_git.cli.workflow import is_file
from uwf_git.commands.start import StartRequest
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store


@verb(
    "uwf run check-repo -p 'is this checkout fit to release?'",
    "uwf run ./my-workflow.yaml -p 'Fix the login bug' --agent ./my-agent",
    "uwf run solve-issue -p 'Fix the login bug' --until reviewer --stream",
    "uwf run solve-issue -p 'Fix the login bug' --background",
    "uwf run solve-issue -p 'Fix the login bug' --on tls://head.example.org:8786",
    exits=DRIVE_EXITS,
)
@start_options
@click.option(
    "--on",
    "address",
    metavar="ADDRESS",
    help="Push the thread, and drive it and its branches there (see `uwf drive --on`). It cannot "
    "be combined with --until, --jobs, --background, --stream, --claim or --timestamps.",
)
@drive_options
def command(
    session: Session, *, request: StartRequest, address: str | None, how: DriveOptions
) -> None:
    """Start a thread and drive it to its end.

    WORKFLOW is a name, a hash, or a YAML file, which is registered first. Each step is a commit of
    its own, and a line on standard error; at a terminal each role at work has a live line below:
    for how long, which attempt, tokens and cost as reported, the last line of its log. An agent
    that fails is tried again as often as its retries allow.

    A run that stops early, for a person's turn, a pause, a failure or Ctrl-C, is continued by `uwf
    thread run`.
    """
    if address is not None and how._replace(trust=False, wait=False) != DriveOptions():
        raise click.UsageError(
            "--on goes without --until, --jobs, --background, --stream, --claim and --timestamps"
        )

    def begin() -> tuple[Store, ThreadId]:
        workflow = request.workflow
        if is_file(workflow):
            from uwf_git.cli.workflow_put import put_file  # noqa: PLC0415 (YAML: 70 ms, and a name needs none)

            workflow = put_file(session, Input(workflow), workdir=request.workdir).workflow
        store = session.open_store(create=True)
        asked = request._replace(workflow=workflow, needs_agents=True, until=how.until)
        started = begin_thread(session, store, asked)
        note_found(started)
        note(f"thread {started.thread}")
        return store, started.thread

    if address is None:
        store, thread = begin()
        drive_and_tell(session, store, Driving(thread, how))
        return
    from uwf_git.cli.drive import drive_begun  # noqa: PLC0415 (imports all that fetches and pushes)

    drive_begun(session, begin, how, address=address, workdir=request.workdir)
