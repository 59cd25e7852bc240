"""`uwf run`."""

import os
import shlex

import click

from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.calling import caller_of
from uwf_git.cli.parameters import Input, prompt_options
from uwf_git.cli.render import emit, note
from uwf_git.cli.settings import Session
from uwf_git.cli.terminal_caller import terminal_caller
from uwf_git.cli.thread.start import agents_option, text_agents, workdir_option
from uwf_git.cli.verb import verb
from uwf_git.cli.workflow.put import put_file
from uwf_git.commands.choose_agent import Choice
from uwf_git.commands.play_agent import agent_player
from uwf_git.commands.run_workflow import Ran, drive_thread
from uwf_git.commands.thread_start import StartRequest, start_thread
from uwf_git.commands.thread_step import Stepped, StepRequest
from uwf_git.store.store import Store


@verb(
    "uwf run check-repo -p 'is this checkout fit to release?'",
    "uwf run workflows/check-repo.yaml -p 'is this checkout fit to release?'",
    exits={3: "an agent failed; `uwf thread step` tries again"},
)
@click.argument("workflow")
@prompt_options(required=True)
@agents_option
@workdir_option
@click.option("--max-steps", type=click.IntRange(min=1), help="Stop after so many steps.")
def command(  # noqa: PLR0913 (one parameter an option, as click wants it)
    session: Session,
    *,
    workflow: str,
    prompt: str,
    agents: tuple[str, ...],
    workdir: str | None,
    max_steps: int | None,
) -> None:
    """Start a thread and drive it to its end.

    WORKFLOW is a name, a hash, or a YAML file, which is registered first. Each step is a commit
    of its own, and a line on standard error; a run that stops early goes on with
    `uwf thread step`.
    """
    if _is_file(workflow):
        workflow = put_file(session, Input(workflow)).workflow
    store = session.open_store(create=True)
    started = start_thread(
        store,
        caller_of(session),
        StartRequest(
            workflow, prompt, text_agents(agents), session.agent, workdir, needs_agents=True
        ),
        thread=session.new_thread_id(),
    )
    note(f"thread {started.thread}")
    request = StepRequest(
        started.thread, agent_player(lambda _log: None), Choice(default=session.agent)
    )
    ran = drive_thread(
        store,
        terminal_caller(session),
        request,
        max_steps=max_steps,
        on_step=_Progress(session, store),
    )
    _note_where_to_look(store, ran)
    emit(session, _document(ran))
    pack_when_due(session, store)


def _is_file(workflow: str) -> bool:
    """Tell a file from a name: names hold no slash, and files of workflows end in .yaml."""
    if workflow == "-" or os.sep in workflow:
        return True
    return workflow.endswith((".yaml", ".yml")) and os.path.lexists(workflow)


class _Progress:
    """A line a step; in between, the store may want to be packed."""

    def __init__(self, session: Session, store: Store) -> None:
        self._session, self._store = session, store
        self._now_ms = session.now_ms
        self._since_ms = session.now_ms()

    def __call__(self, stepped: Stepped) -> None:
        now_ms = self._now_ms()
        if stepped.role is not None:
            seconds = (now_ms - self._since_ms) / 1000
            note(f"step {stepped.depth} {stepped.role}: {stepped.said} ({seconds:.1f} s)")
            pack_when_due(self._session, self._store)
        self._since_ms = now_ms


def _note_where_to_look(store: Store, ran: Ran) -> None:
    thread = ran.last.thread
    place = "threads" if ran.last.role is not None else "archive"
    note(f"{ran.last.status} after {ran.last.depth} steps; look at it with")
    note(f"  uwf thread read {thread}")
    note(f"  git -C {shlex.quote(store.path)} log --graph refs/{place}/{thread}")


def _document(ran: Ran) -> dict[str, object]:
    last = ran.last
    return {
        "workflow": last.workflow,
        "thread": last.thread,
        "head": last.head,
        "status": last.status,
        "role": last.role,
        "steps": ran.steps,
    }
