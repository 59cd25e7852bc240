"""The files that a role names, as the context of its turn has them."""

from typing import TYPE_CHECKING, Any, NamedTuple

from uwf_git.commands.agent_run.runs import BegunTurn, read_begun_turn
from uwf_git.commands.turn.input_files import InputFile, read_input_files
from uwf_git.commands.turn.role_files import find_output_path
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import Role
from uwf_git.store.store import Store
from uwf_git.store.threads.local_files import find_workdir
from uwf_git.store.threads.run_dir import RunDir, get_run_dir, has_runs
from uwf_git.store.threads.snapshot import Snapshot

if TYPE_CHECKING:
    from uwf_git.commands.turn.flow import FlowPlace

_NOT_KEPT = "is not kept: the thread does not tell what it held then"


class ViewedTurn(NamedTuple):
    """A turn whose files are shown."""

    store: Store
    snapshot: Snapshot
    present: ThreadState
    place: "FlowPlace | None"
    role: Role


def find_begun(
    store: Store, snapshot: Snapshot, role: str | None
) -> tuple[BegunTurn, RunDir] | None:
    """Return the turn of *role* that has begun at *snapshot*, and its run; None: none has."""
    thread = snapshot.record.thread
    if role is None or not has_runs(store, thread):
        return None
    run = get_run_dir(store, thread, snapshot.turn_start)
    begun = read_begun_turn(run)
    return (begun, run) if begun is not None and begun.role == role else None


def view_output_file(turn: ViewedTurn) -> dict[str, Any]:
    """Return where the agent may leave its meta: of a turn that has begun, as it began."""
    if turn.role.output_file is None:
        return {}
    begun = find_begun(turn.store, turn.snapshot, turn.role.name)
    path = "" if begun is None else begun[1].read_output_file()
    found = path or find_output_path(turn.snapshot, turn.present, turn.place, turn.role)
    return {"outputFile": found}


def view_input_files(turn: ViewedTurn, *, is_past: bool) -> dict[str, Any]:
    """Return the files that the turn is given, as they are now; of a past turn only their names."""
    snapshot = turn.snapshot
    workdir = None if is_past else find_workdir(turn.store, snapshot.record.thread)
    files = read_input_files(snapshot, turn.present, turn.place, turn.role, workdir=workdir)
    if is_past:
        files = [InputFile(each.path, "", _NOT_KEPT) for each in files]
    return {"inputFiles": [_view(each) for each in files]} if files else {}


def _view(file: InputFile) -> dict[str, Any]:
    if file.problem is not None:
        return {"path": file.path, "problem": file.problem}
    return {"path": file.path, "content": file.content}
