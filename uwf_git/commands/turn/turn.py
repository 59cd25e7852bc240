"""Turns: one role's attempt at one step, its result and its check, the thread after a commit."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.agents.command_line import REPLY_FIELDS, AgentReply
from uwf_git.agents.files import BadFileBelow, find_below, read_below
from uwf_git.commands.split import SplitRefused, find_container
from uwf_git.commands.turn.flow import (
    FlowPlace,
    KeepRules,
    RetryRules,
    Spending,
    count_own,
    fill_template,
    run_in_fork,
)
from uwf_git.engine import flow_state
from uwf_git.engine.flow_move import FlowWords
from uwf_git.errors import Refused, UwfError, name_some
from uwf_git.model.names import NodeHash, Oid, ThreadId, check_path_below
from uwf_git.model.node import Node, NotCanonical, canonical
from uwf_git.model.plain_schema import is_plainly_valid, schema_check
from uwf_git.model.text import first_line, render_size, visible_line
from uwf_git.model.thread import Status, ThreadState, TransitionRecord, drop_unfit, find_unfit
from uwf_git.model.workflow import Role, Workflow
from uwf_git.store.objects.commit import DEFAULT_BLOB_BYTES, encode_compact
from uwf_git.store.store import Store
from uwf_git.store.threads.history import (
    Snapshot,
    find_tip,
    get_role,
    get_schema,
    get_workflow,
    read_root,
)
from uwf_git.store.threads.local_files import (
    RunDir,
    find_workdir,
    get_run_dir,
    give_workdir,
    set_workdir,
)


class Turn(NamedTuple):
    """Everything a player needs to play a role once."""

    store: Store
    snapshot: Snapshot
    present: ThreadState
    started_after: Oid
    """The commit after which the turn began; its run directory has this name."""

    role: str
    agent: Node

    environ: Mapping[str, str]
    workdir: str
    retry: RetryRules = RetryRules(0, 0)
    keep: KeepRules = KeepRules()
    place: FlowPlace | None = None
    """The place of a flow that it plays; *present* has the attempts at this place."""

    spending: Spending | None = None
    """The limits that hold for it; None: the thread's own."""

    may_end: Callable[[], bool] = lambda: False
    """Asked some times a second: its agent may be ended if it has left its meta in its file."""

    answered: "Played | None" = None
    """The answer that the checks of its role are to check; None: its agent has to answer."""

    @property
    def asked(self) -> Role:
        workflow = get_workflow(self.snapshot, self.present.workflow)
        return get_role(self.snapshot, workflow.roles[self.role])

    @property
    def limited(self) -> Spending:
        return self.spending or Spending(self.thread, self.present)

    @property
    def thread(self) -> ThreadId:
        return self.snapshot.record.thread

    @property
    def at(self) -> str | None:
        """Its place as text; None in a graph."""
        return None if self.place is None else str(self.place.at)

    @property
    def is_free(self) -> bool:
        """Whether the agent may print any text: it plays a role of a flow that asks for nothing."""
        if self.place is None:
            return False
        return get_schema(self.snapshot, self.asked.output_schema) is True

    @property
    def timeout_s(self) -> float | None:
        """How long the agent may take, by its place or its own settings; None: no limit."""
        timeout_s = None if self.place is None else self.place.timeout_s
        return self.agent.payload.get("timeout") if timeout_s is None else timeout_s

    @property
    def run_dir(self) -> RunDir:
        """Where its agent leaves its output until the turn is recorded."""
        return get_run_dir(self.store, self.thread, self.started_after)

    @property
    def attempt(self) -> int:
        return self.present.attempts + 1


LIMIT_KIND = "rate-limit"
"""The kind of a failure by a usage limit, in the words of the kit's agents."""


class StepFiles(NamedTuple):
    """What an agent left in files beside its reply."""

    prompt: str = ""

    trace: Mapping[str, Any] | None = None

    kind: str | None = None
    """The kind of its failure, in its own word."""

    usage: Mapping[str, Any] | None = None
    """What a failed agent spent."""

    reset_at: int | None = None
    """When the limit that it hit ends, in ms since 1970."""


class Played(NamedTuple):
    """The result of a turn: a reply or an error."""

    reply: AgentReply | None
    started_ms: int
    duration_ms: int
    error: Mapping[str, Any] | None = None
    """``kind`` and ``message``, when there is no reply."""

    hint: str | None = None
    exit_code: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    left: StepFiles = StepFiles()
    env: Mapping[str, str] | None = None
    """The variables of the agent's environment that are recorded, masked."""

    files: str | None = None
    """The commits of the project's files before and after the turn; None: it changed none."""

    left_running: tuple[str, ...] = ()
    """What its agent has started, and what goes on: ``sleep (4711)``."""

    is_stopped: bool = False
    """The agent was stopped from outside (a pause, a kill)."""

    is_kept: bool = False
    """The answer stays in the run directory: nothing is recorded, and the next step takes it up."""

    def describe_left(self, role: str) -> str:
        left = visible_line(name_some(self.left_running, most=3))
        return f"warning: {role} has ended, and what it started goes on: {left}; `kill` ends it"


Player = Callable[[Turn], Played]
"""Plays a turn, or runs the checks of an answered turn. If it raises, nothing is recorded."""


class ThreadResult(NamedTuple):
    """A thread after a commit: the result of every command that moves one."""

    workflow: NodeHash
    thread: ThreadId
    head: NodeHash
    status: Status
    role: str | None
    """The role that took the step, or the role a person plays; None after other events."""

    depth: int
    said: str
    """The subject of the commit, without its first word; of a rejection, why."""

    commit: Oid

    is_rejected: bool = False
    """The step is a verdict that rejects the work."""

    work: str | None = None
    """Of a branch that ended and worked apart: the ref of its work, in the user's repository."""

    branches: tuple[Any, ...] = ()
    """Of a thread that has split: what the step did to each branch, as ``BranchStep``."""


def read_thread_result(tip: Snapshot) -> ThreadResult:
    """Return the result that the commit of *tip* describes."""
    said = tip.subject.partition(": ")[2]
    return build_thread_result(tip.record, said=said, commit=tip.commit.oid)


def build_thread_result(record: TransitionRecord, *, said: str, commit: Oid) -> ThreadResult:
    """Return the result that *record* of *commit* describes; *said* is its subject."""
    return ThreadResult(
        workflow=record.workflow,
        thread=record.thread,
        head=record.node,
        status=record.status,
        role=record.role,
        depth=record.depth,
        said=said,
        commit=commit,
    )


# Work directories: where the agents of a step run. A thread from elsewhere needs one set.


def workdir_unknown(store: Store, thread: ThreadId) -> Refused:
    tip = find_tip(store, thread)
    root = thread if tip is None else read_root(store, tip).record.thread
    verb = "step" if root == thread else "run"
    return Refused(
        f"thread {thread} came from elsewhere and has no work directory here",
        code="workdir-unknown",
        hint=f"say where its agents may work: `uwf thread {verb} {root} --workdir PATH`",
        thread=thread,
    )


def choose_workdir(store: Store, thread: ThreadId, cwd: str, *, named: str | None) -> str:
    """Return the directory in which the agents of *thread* run; remember *named*."""
    known = find_workdir(store, thread)
    if named is not None:
        path = existing_directory(named, cwd)
        (give_workdir if known is None else set_workdir)(store, thread, path)
        return path
    if known is None:
        raise workdir_unknown(store, thread)
    return existing_directory(known, cwd)


def existing_directory(path: str, cwd: str) -> str:
    """Return *path* as an absolute path; it must be a directory."""
    path = os.path.abspath(os.path.join(cwd, os.path.expanduser(path)))
    if not os.path.isdir(path):
        problem = "is not a directory" if os.path.lexists(path) else "is not there"
        raise Refused(
            f"the work directory {path} {problem}",
            code="not-a-directory",
            hint="make it, or name another with --workdir PATH",
            path=path,
        )
    return path


# The files that a role names, at a turn: their templates filled with the state of the thread.


def find_output_path(
    snapshot: Snapshot, present: ThreadState, place: FlowPlace | None, role: Role
) -> str | None:
    if role.output_file is None:
        return None
    return fill_paths(snapshot, present, place, (role.output_file,), of=role)[0]


def fill_paths(
    snapshot: Snapshot,
    present: ThreadState,
    place: FlowPlace | None,
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
        if (problem := check_path_below(path)) is not None:
            raise BadFileBelow(path, problem)
        paths.append(path)
    return paths


def _fill(
    snapshot: Snapshot, present: ThreadState, place: FlowPlace | None, template: str, role: Role
) -> Any:
    if "${" not in template:
        return template
    if place is not None:
        return fill_template(snapshot, present, place, template)
    prompt = snapshot.get_start().payload["prompt"]
    words = FlowWords("javascript", present.state, prompt, present.depth)
    return words.fill_here(template, count_own(snapshot, present).get(role.name, 0))


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
    place: FlowPlace | None,
    role: Role,
    *,
    workdir: str | None,
) -> list[InputFile]:
    """Return the files that *role* is given at a turn, in the order of its patterns."""
    try:
        templates = (*role.input_files, *(() if place is None else place.input_files))
        patterns = fill_paths(snapshot, present, place, templates, of=role)
    except BadFileBelow as error:
        return [InputFile(str(error.facts["path"]), "", error.problem)]
    if workdir is None:
        return [InputFile(each, "", "has no work directory here") for each in patterns]
    return read_files(workdir, patterns)


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


# Check a reply's meta against its schema, in a limited fork: a pattern can run for ever.

_MOST_TOLD = 5

MOST_REPLY_BYTES = DEFAULT_BLOB_BYTES - 1024**2
"""Of its text, and of all else in it: a node has more, and shared stores take no larger one."""

STORED = ("meta", "content", "usage", "state", "session")
"""The fields of a reply that a step keeps as they are."""


def get_output_schema(snapshot: Snapshot, workflow: Workflow, role: str) -> Any:
    return get_schema(snapshot, get_role(snapshot, workflow.roles[role]).output_schema)


def list_undeclared(schema: Any, fields: Mapping[str, Any]) -> list[str]:
    """Return the keys of *fields* that may stand beside a meta, and are no fields of *schema*."""
    declared = schema.get("properties", {}) if isinstance(schema, dict) else {}
    return sorted((fields.keys() & REPLY_FIELDS) - declared.keys())


def find_role_problem(tip: Snapshot, meta: Any) -> str | None:
    """Return why *meta* cannot be the result of the role that a branch plays."""
    split = tip.get_present().split
    if split is None:
        return None
    # The join will tell.
    with suppress(SplitRefused):
        container = find_container(tip, split.at)
        if container.flow is None:
            return find_problem(get_output_schema(tip, container.workflow, container.at), meta)
    return None


def check_reply(turn: Turn, played: Played) -> Played:
    """Return *played* if its meta is valid against the role's schema, else a failed turn."""
    reply = played.reply
    if reply is None:
        return played
    schema = get_schema(turn.snapshot, turn.asked.output_schema)
    problem = find_reply_problem(schema, {name: getattr(reply, name) for name in STORED})
    if problem is None:
        return check_state(turn, played)
    log = first_line(played.stderr.decode(errors="replace").strip().rpartition("\n")[2])
    told = f"{problem}; its log ends: {log[:200]}" if log else problem
    return refuse_answer(played, {"kind": "schema", "message": told})


def check_state(turn: Turn, played: Played) -> Played:
    error = played.reply and find_flow_problem(turn, played.reply)
    return refuse_answer(played, error) if error else played


def find_flow_problem(turn: Turn, reply: AgentReply) -> dict[str, str] | None:
    """Return the error if the state after *reply* cannot be stored, or its verdict be read."""
    if turn.place is None:
        return None
    step = {"meta": reply.meta, "state": reply.state}
    state = turn.place.fold(turn.present.state, step, reply.content)
    if (problem := flow_state.find_state_problem(state)) is not None:
        return {"kind": "state", "message": problem}
    try:
        turn.place.judge(reply.meta)
    except UwfError as error:
        return {"kind": "verdict", "message": f"its verdict cannot be told: {error.message}"}
    return None


def refuse_answer(played: Played, error: Mapping[str, Any] | None) -> Played:
    """Return *played* as a failed turn: what its answer has cost counts all the same."""
    reply = played.reply
    if reply is None:
        return played
    output = played.stdout or reply.content.encode(errors="replace")
    spent = drop_unfit(reply.usage)
    is_fit = find_reply_problem({}, {"meta": {}, "usage": spent}) is None
    left = played.left._replace(usage=(spent if is_fit else None) or played.left.usage)
    return played._replace(reply=None, error=error, stdout=output, left=left)


def find_reply_problem(schema: Any, fields: Mapping[str, Any]) -> str | None:
    """Return why *fields* of ``AgentReply``, at least its meta, cannot be recorded; or None."""
    try:
        others = canonical(dict(fields))
    except NotCanonical as error:
        return error.message
    if (unfit := find_unfit(fields.get("usage") or {})) is not None:
        return f"usage: {unfit}"
    content = others.pop("content", "")
    # Bytes that are no UTF-8 take three each, and 9e15 takes sixteen.
    if max(len(content.encode()), len(encode_compact(others))) > MOST_REPLY_BYTES:
        return f"its answer would take more than {render_size(MOST_REPLY_BYTES)} in the store"
    return find_problem(schema, fields["meta"])


def find_problem(schema: Any, meta: Any) -> str | None:
    if is_plainly_valid(schema, meta):
        return None
    check_value = schema_check.check_value

    def check() -> list[str]:
        return [f"{_place(each.path)}: {each.message}" for each in check_value(schema, meta)]

    try:
        told: list[str] = run_in_fork(check, what="the check of meta")
    except UwfError as error:
        return f"meta cannot be checked: {error.message}"
    if not told:
        return None
    more = f" (and {len(told) - _MOST_TOLD} more)" if len(told) > _MOST_TOLD else ""
    return "; ".join(told[:_MOST_TOLD]) + more


def list_field_problems(schema: Any, meta: Any) -> list[dict[str, str]]:
    """Return what is wrong with *meta*, for a form, by fields' JSON pointers."""
    point_out = schema_check.point_out

    def check() -> list[dict[str, str]]:
        return [{"pointer": each.path, "message": each.message} for each in point_out(schema, meta)]

    try:
        return list(run_in_fork(check, what="the check of meta"))
    except UwfError as error:
        return [{"pointer": "", "message": error.message}]


def _place(path: str) -> str:
    return f"meta{path}" if path.startswith("[") else f"meta.{path}" if path else "meta"
