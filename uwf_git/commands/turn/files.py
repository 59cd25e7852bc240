"""Where the agents of a turn work, and the files that they are given and name."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from uwf_git.agents.files import BadFileBelow, find_below, read_below
from uwf_git.errors import Refused, UwfError
from uwf_git.model.names import ThreadId
from uwf_git.model.path_below import check_path_below
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import Role
from uwf_git.store.store import Store
from uwf_git.store.threads.local_files import find_workdir, give_workdir, set_workdir
from uwf_git.store.threads.snapshot import Snapshot

if TYPE_CHECKING:
    from uwf_git.commands.turn.flow import FlowPlace


# Work directories: where the agents of a step run. A thread from elsewhere needs one set.


def workdir_unknown(thread: ThreadId) -> Refused:
    return Refused(
        f"thread {thread} came from elsewhere and has no work directory here",
        code="workdir-unknown",
        hint=f"say where its agents may work: `uwf thread step {thread} --workdir PATH`",
        thread=thread,
    )


def not_a_directory(path: str) -> Refused:
    """Tell that the work directory is missing or not a directory."""
    problem = "is not a directory" if os.path.lexists(path) else "is not there"
    return Refused(
        f"the work directory {path} {problem}",
        code="not-a-directory",
        hint="make it, or name another with --workdir PATH",
        path=path,
    )


def choose_workdir(store: Store, thread: ThreadId, cwd: str, *, named: str | None) -> str:
    """Return the directory in which the agents of *thread* run; remember *named*."""
    known = find_workdir(store, thread)
    if named is not None:
        path = existing_directory(named, cwd)
        (give_workdir if known is None else set_workdir)(store, thread, path)
        return path
    if known is None:
        raise workdir_unknown(thread)
    return existing_directory(known, cwd)


def existing_directory(path: str, cwd: str) -> str:
    """Return *path* as an absolute path, or raise ``NotADirectory``."""
    absolute = os.path.abspath(os.path.join(cwd, os.path.expanduser(path)))
    if not os.path.isdir(absolute):
        raise not_a_directory(absolute)
    return absolute


# Files of a turn: those that it is given, and those that its role names.

# The files that a role names, at a turn: their templates filled with the state of the thread.


def find_output_path(
    snapshot: Snapshot, present: ThreadState, place: "FlowPlace | None", role: Role
) -> str | None:
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


# The files that a turn is given (``inputFiles``), read as they are now.

KIND = "input-file"
"""The kind of a failed attempt whose agent did not start, since a file is missing."""

MAX_BYTES = 1024 * 1024
MAX_ALL_BYTES = 8 * MAX_BYTES
MAX_FILES = 200


class InputFile(NamedTuple):
    path: str
    """Below the work directory."""

    content: str = ""
    problem: str | None = None
    """Why there is no content; None: there is."""


def read_input_files(
    snapshot: Snapshot,
    present: ThreadState,
    place: "FlowPlace | None",
    role: Role,
    *,
    workdir: str | None,
) -> list[InputFile]:
    """Return the files that *role* is given at a turn, in the order of its patterns."""
    try:
        patterns = list_patterns(snapshot, present, place, role)
    except BadFileBelow as error:
        return [InputFile(str(error.facts["path"]), "", error.problem)]
    if workdir is None:
        return [InputFile(each, "", "has no work directory here") for each in patterns]
    return read_files(workdir, patterns)


def list_patterns(
    snapshot: Snapshot, present: ThreadState, place: "FlowPlace | None", role: Role
) -> list[str]:
    patterns = (*role.input_files, *(() if place is None else place.input_files))
    return fill_paths(snapshot, present, place, patterns, of=role)


def read_files(workdir: str, patterns: Sequence[str]) -> list[InputFile]:
    """Return the files below *workdir* that *patterns* name, each once."""
    files: dict[str, InputFile] = {}
    left = MAX_ALL_BYTES
    for pattern in patterns:
        try:
            paths = find_below(workdir, pattern)
        except BadFileBelow as error:
            files[pattern] = InputFile(pattern, "", error.problem)
            continue
        if not paths:
            files[pattern] = InputFile(pattern, "", "is not there")
        for path in paths:
            if path in files:
                continue
            files[path] = _read(workdir, path)
            left -= len(files[path].content)
            if len(files) > MAX_FILES or left < 0:
                limits = f"{MAX_FILES} files and {MAX_ALL_BYTES // MAX_BYTES} MiB"
                return [InputFile(pattern, "", f"comes to more than {limits}")]
    return list(files.values())


def _read(workdir: str, path: str) -> InputFile:
    try:
        content = read_below(workdir, path, most_bytes=MAX_BYTES, follows_links=True)
        if content is None:
            return InputFile(path, "", "is not there")
        return InputFile(path, content.decode("utf-8-sig"))
    except BadFileBelow as error:
        return InputFile(path, "", error.problem)
    except UnicodeDecodeError:
        return InputFile(path, "", "is not UTF-8")
