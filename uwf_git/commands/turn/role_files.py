"""The files that a role names, at a turn: their templates filled with the state of the thread."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from uwf_git.agents.files import BadFileBelow
from uwf_git.errors import UwfError
from uwf_git.model.path_below import check_path_below
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import Role
from uwf_git.store.threads.snapshot import Snapshot

if TYPE_CHECKING:
    from uwf_git.commands.turn.flow import FlowPlace


def find_output_path(
    snapshot: Snapshot, present: ThreadState, place: "FlowPlace | None", role: Role
) -> str | None:
    """Return the path of the file in which *role* may leave its meta; None if it names none.

    Raises:
        BadFileBelow: its template has no value, or that is no path below the work directory.
    """
    if role.output_file is None:
        return None
    [path] = fill_paths(snapshot, present, place, (role.output_file,), of=role)
    return path


def fill_paths(
    snapshot: Snapshot,
    present: ThreadState,
    place: "FlowPlace | None",
    templates: Sequence[str],
    *,
    of: Role,
) -> list[str]:
    """Return the paths that *templates* of a role come to at a turn.

    Raises:
        BadFileBelow: one has no value, or that is no path below the work directory.
    """
    paths: list[str] = []
    for template in templates:
        try:
            path = _fill(snapshot, present, place, template, of)
        except UwfError as error:
            raise BadFileBelow(template, f"has no value: {error.message}") from error
        if not isinstance(path, str):
            raise BadFileBelow(template, f"is {path!r:.60}, and no path")
        problem = check_path_below(path)
        if problem is not None:
            raise BadFileBelow(path, problem)
        paths.append(path)
    return paths


def _fill(
    snapshot: Snapshot,
    present: ThreadState,
    place: "FlowPlace | None",
    template: str,
    role: Role,
) -> Any:
    if "${" not in template:
        return template
    if place is not None:
        from uwf_git.commands.turn.flow import fill_template  # noqa: PLC0415 (flows only)

        return fill_template(snapshot, present, place, template)
    from uwf_git.engine.flow_words import FlowWords  # noqa: PLC0415 (few roles of graphs need it)

    prompt = snapshot.get_start().payload["prompt"]
    words = FlowWords("javascript", present.state, prompt, present.depth)
    return words.fill_here(template, present.visits.get(role.name, 0))
