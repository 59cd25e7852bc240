"""The plans of a work directory: their thread, its views, where it stands, what is removed."""

import json
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any, Self

from uwf_git.commands.agent_run.runs import add_to_trace, is_any_at_work, read_step_dir
from uwf_git.commands.caller import Caller
from uwf_git.commands.family import Family
from uwf_git.commands.turn.flow import find_limit
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.debug_log import debug
from uwf_git.errors import Conflict, Refused, name_some
from uwf_git.model.names import Oid, ThreadId, check_path_below, is_thread_id
from uwf_git.model.thread import ENDED
from uwf_git.plan import phases
from uwf_git.plan.hooks import HOOK_VARIABLE, Notice, StopGrace, StopServer, TurnAtWork
from uwf_git.plan.project_files import (
    find_plans,
    keep_out_of_git,
    list_misnamed,
    list_plan_problems,
)
from uwf_git.plan.settings import DEFAULTS, PlanSettings
from uwf_git.store.locks import hold_lock
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head, get_head, list_threads
from uwf_git.store.threads.history import Snapshot, get_workflow, read_snapshot
from uwf_git.store.threads.local_files import find_driver, find_workdir

# Which thread carries out the plans of a work directory.

WORKFLOW = "plan-execute"
"""The name of the workflow; each of its threads has a directory of its own."""


def find_plan_thread(
    store: Store | None, workdir: str, settings: PlanSettings = DEFAULTS
) -> Snapshot | None:
    """Return the newest commit of the plan thread of *workdir*, or None.

    The thread that the state file names, even if it has ended, comes first, then the newest
    unfinished thread. The state file is believed where the directory of the thread is gone: this
    one is that, renamed. *store* is None if there is no store yet.
    """
    if store is None:
        return None
    hint = phases.read_state(workdir, state_file=settings.state_file).get("thread")
    named = None
    if isinstance(hint, str) and is_thread_id(hint):
        named = _read_plan_thread(store, ThreadId(hint), workdir, is_named=True)
    if named is not None and named.record.status not in ENDED:
        return named
    threads = list_threads(store, archived=False)
    found = (_read_plan_thread(store, thread, workdir) for thread in threads)
    return next((each for each in found if each and each.record.status not in ENDED), named)


def find_plan_dir(found: Snapshot | None, settings: PlanSettings) -> str:
    named = _find_begun(found).get("planDir")
    return named if isinstance(named, str) and named.strip() else settings.plan_dir


def _find_begun(found: Snapshot | None) -> Mapping[str, Any]:
    """Return the state with which the plans began; agents can set anything in the newer ones."""
    if found is None:
        return {}
    own = found.get_start().payload.get("initialState")
    return own or get_workflow(found, found.record.workflow).initial_state or {}


def _read_plan_thread(
    store: Store, thread: ThreadId, workdir: str, *, is_named: bool = False
) -> Snapshot | None:
    """Return the tip of *thread* if it runs the workflow, and in *workdir* as far as is known."""
    known = find_workdir(store, thread)
    has_moved = is_named and known is not None and not os.path.isdir(known)
    if known and not has_moved and os.path.realpath(known) != os.path.realpath(workdir):
        return None
    head = find_head(store, thread)
    if head is None or (known is None and not head.archived):
        return None
    tip = read_snapshot(store, head.commit)
    return tip if tip.record.workflow_name == WORKFLOW else None


# Whether somebody is at work on the plans of a directory.


def _plans_at_work(thread: ThreadId) -> Conflict:
    return Conflict(
        f"thread {thread} is at work on the plans of this directory",
        code="plans-at-work",
        hint=f"`uwf thread wait {thread}` waits for it, `uwf thread kill {thread}` ends it; "
        "`uwf plan status` tells more",
        thread=thread,
    )


def require_rest(store: Store, thread: ThreadId) -> None:
    if is_any_at_work(store, Family(store, thread)):
        raise _plans_at_work(thread)


def require_no_driver(store: Store, thread: ThreadId) -> None:
    """Check that no process drives *thread*; an agent may have outlived its driver."""
    if find_driver(store, thread) is not None:
        raise _plans_at_work(thread)


def hold_plans(store: Store) -> AbstractContextManager[object]:
    """Let no other process begin plans in *store*, or write their views, meanwhile."""
    return hold_lock(store.local_path("locks", "plans"), wait=True)


# The views of a thread in its work directory: the state file and the session log.


class Views:
    """The views of one thread, kept up by its driver; each update writes what is missing."""

    def __init__(self, store: Store, workdir: str, settings: PlanSettings = DEFAULTS) -> None:
        self._store, self._workdir, self._settings = store, workdir, settings
        self.state: phases.PlanState = phases.IDLE
        """Where the thread stood at the last update."""

    def update(self, tip: Oid, where: Mapping[str, Any]) -> None:
        """Bring both up to the commit *tip*.

        *where* tells the state file who drives, and where that listens (phases.py).
        """
        story = phases.read_story(self._store, tip)
        # Known even where nothing can be written.
        self.state = phases.fold_story(story)
        if not os.path.isdir(self._workdir):
            # Renamed meanwhile: nothing is to come back under the old name.
            return
        # The hook asks the state file whether to speak at all, so it comes first.
        phases.write_state(self._workdir, self.state, where, state_file=self._settings.state_file)
        phases.write_session_log(self._workdir, story, memory_dir=self._settings.memory_dir)


def find_where(
    store: Store, workdir: str, thread: ThreadId, settings: PlanSettings = DEFAULTS
) -> dict[str, Any]:
    known = phases.read_state(workdir, state_file=settings.state_file)
    listens = {"address": known.get("address"), "port": known.get("port")}
    is_known = known.get("thread") == thread
    return {"thread": thread, "repo": store.path} | (listens if is_known else {})


# `uwf plan status` and `uwf plan plans`: where the thread of a directory stands, and its plans.


def read_plan_status(
    store: Store | None, workdir: str, settings: PlanSettings = DEFAULTS
) -> dict[str, Any]:
    """Return where the plan thread of *workdir* stands, in the form of the state file.

    With ``driver``, by its process, and where that listens while it lives; and with ``limit`` if
    the thread is at one. A state file that is missing or wrong while the thread lives is mended.
    """
    found = find_plan_thread(store, workdir, settings)
    if store is None or found is None:
        return phases.build_state_document(phases.IDLE, {}) | {"driver": None}
    state = _read_state_of(store, found)
    thread = found.record.thread
    where = find_where(store, workdir, thread, settings)
    if "port" in where or found.record.status not in ENDED:
        # Where nothing can be written, it can still be told.
        with suppress(OSError), hold_plans(store):
            # Whoever drives may have written something newer.
            if get_head(store, thread).commit == found.commit.oid:
                where = find_where(store, workdir, thread, settings)
                phases.write_state(workdir, state, where, state_file=settings.state_file)
    driver = find_driver(store, thread)
    if driver is None:
        where |= {"address": None, "port": None}
    reached = None if found.record.status in ENDED else find_limit(store, found)
    limit = {} if reached is None else {"limit": reached.message}
    return (
        phases.build_state_document(state, where) | {"driver": driver and driver.get("pid")} | limit
    )


def read_plan_rows(
    store: Store | None, workdir: str, settings: PlanSettings = DEFAULTS
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row for each plan of *workdir*, and a line for each file almost named as a plan."""
    found = find_plan_thread(store, workdir, settings)
    state = phases.IDLE if store is None or found is None else _read_state_of(store, found)
    there = find_plans(workdir, find_plan_dir(found, settings))
    return phases.list_plan_rows(state, there.plans), list_misnamed(there)


def _read_state_of(store: Store, tip: Snapshot) -> phases.PlanState:
    return phases.fold_story(phases.read_story(store, tip.commit.oid))


# `uwf plan run`: whether plans may be begun in a directory, and the folders that they need.


def prepare_plans(
    store: Store, workdir: str, settings: PlanSettings = DEFAULTS, *, has_plans: bool = False
) -> None:
    """Check that plans may begin in *workdir*, and make their folders.

    With *has_plans* the plan files that lie there are to be carried out as they are.
    """
    found = find_plan_thread(store, workdir, settings)
    if found is not None and found.record.status not in ENDED:
        thread = found.record.thread
        require_rest(store, thread)
        raise Refused(
            f"thread {thread} has not ended the plans of this directory",
            code="plans-unfinished",
            hint="`uwf plan resume` goes on with it; `uwf plan clean` ends it",
            thread=thread,
        )
    there = find_plans(workdir, settings.plan_dir)
    if there.plans and not has_plans:
        names = [plan.file for plan in there.plans]
        raise Refused(
            f"there are plan files already: {name_some(names, most=3)}",
            code="plans-there",
            hint="--plans takes them as they are; `uwf plan clean --all` removes them",
            files=names,
        )
    problems = list_plan_problems(workdir, there) if has_plans else list_misnamed(there)
    if problems:
        raise Refused(
            "the plan files cannot be carried out",
            code="bad-plans",
            hint=f"plan files are {settings.plan_dir}/NNN-name.md; "
            + ("without --plans an agent writes them" if has_plans else "rename or move these"),
            problems=problems,
        )
    for folder in (settings.plan_dir, settings.memory_dir):
        os.makedirs(os.path.join(workdir, folder), exist_ok=True)
    keep_out_of_git(os.path.join(workdir, os.path.dirname(settings.state_file)))


# `uwf plan clean`.


def clean_plans(
    store: Store | None,
    caller: Caller,
    workdir: str,
    settings: PlanSettings = DEFAULTS,
    *,
    with_plans: bool = False,
) -> dict[str, Any]:
    """End the unfinished thread of *workdir*, remove its state files, and return which.

    With *with_plans* also the plan files, and nothing else; no link is followed.
    """
    found = find_plan_thread(store, workdir, settings)
    if store is not None and found is not None:
        require_rest(store, found.record.thread)
    named = _find_begun(found).get("statusFile")
    is_named = isinstance(named, str) and not check_path_below(named)
    files = [settings.state_file, str(named) if is_named else settings.status_file]
    if with_plans:
        plan_dir = find_plan_dir(found, settings)
        if not os.path.isabs(plan_dir):
            _check_no_link(workdir, plan_dir)
        files += [plan.file for plan in find_plans(workdir, plan_dir).plans]
    there = [path for path in dict.fromkeys(files) if _is_plain_file(workdir, path)]
    ended = None
    if store is not None and found is not None and found.record.status not in ENDED:
        from uwf_git.commands.control.answer import kill_thread  # noqa: PLC0415 (40 modules for this verb alone)

        ended = found.record.thread
        kill_thread(store, caller, ended, reason="cleaned")
    for path in there:
        os.unlink(os.path.join(workdir, path))
    return {"ended": ended, "removed": there}


def _check_no_link(workdir: str, folder: str) -> None:
    root = os.path.realpath(workdir)
    if os.path.realpath(os.path.join(root, folder)) != os.path.normpath(os.path.join(root, folder)):
        raise Refused(
            f"{folder} is a link, or lies behind one; nothing was removed",
            code="behind-link",
            hint="remove its files by hand, if they are yours",
            folder=folder,
        )


def _is_plain_file(workdir: str, path: str) -> bool:
    """Check whether *path* is a regular file there, and no link."""
    _check_no_link(workdir, os.path.dirname(path))
    with suppress(OSError):
        return stat.S_ISREG(os.lstat(os.path.join(workdir, path)).st_mode)
    return False


# Receive the stop notices of the turn at work, while its thread is driven here.
#
# A notice is recorded, and begins the grace after which a program that has left its report may be
# ended. It makes no success and no failure.

_MOST_RECORDED = 20
_MOST_BYTES = 4096
_OURS = ("type", "phase", "timestamp", "thread", "head")


class StopWatch:
    """A stop server, and the grace of the turn that is at work; use it in a ``with``."""

    def __init__(self, settings: PlanSettings, *, port: int | None = None) -> None:
        """Listen where *settings* say; *port*, if it was typed, and no other."""
        self._grace = StopGrace(settings.stop_grace_ms / 1000)
        self._recorded = 0
        self._step_dir = ""
        ports = (settings.port, 0) if port is None else (port,)
        self._server = StopServer(self._take, *ports, address=settings.address)
        self.where: Mapping[str, Any] = {"address": self._server.address, "port": self._server.port}
        """Where it listens, for the state file."""

        self.is_local = self._server.is_local

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def attend(self, play: Player, find_phase: Callable[[], str], hook: str | None) -> Player:
        """Return a player that plays turns by *play*, and hears of their stops meanwhile.

        *find_phase* tells the phase at the beginning of a turn. The agent gets the path *hook* of
        the script by which its tool reports its stop.
        """

        def play_attended(turn: Turn) -> Played:
            if turn.answered is not None:
                # Its agent has ended.
                return play(turn)
            given = {} if hook is None else {HOOK_VARIABLE: f"{turn.thread}:{hook}"}
            self._recorded, self._step_dir = 0, turn.run_dir.step_dir
            at_work = TurnAtWork(turn.thread, turn.snapshot.record.node, find_phase())
            # The last, since the server may tell of a stop as soon as the turn is known.
            self._grace.begin(at_work, has_stopped=_has_stopped(self._step_dir))
            try:
                return play(
                    turn._replace(environ={**turn.environ, **given}, may_end=self._grace.is_over)
                )
            finally:
                self._grace.begin(None)

        return play_attended

    def _take(self, notice: Notice) -> None:
        step_dir = self._step_dir
        is_taken = self._grace.take(notice)
        debug("7M3QX0ZK", "stop notice", is_taken=is_taken, notice=_shorten(notice))
        if is_taken and self._recorded < _MOST_RECORDED:
            self._recorded += 1
            # The turn has ended, or its agent has put something else there.
            with suppress(OSError):
                add_to_trace(step_dir, {"type": phases.STOP_NOTICE, "notice": _shorten(notice)})


def _has_stopped(step_dir: str) -> bool:
    """Return whether the program of a turn that a dead driver began has told of its stop."""
    trace = read_step_dir(step_dir).trace or {}
    return any(event.get("type") == phases.STOP_NOTICE for event in trace.get("events", ()))


def _shorten(notice: Notice) -> dict[str, Any]:
    """Return what was sent; of a long notice only the fields that we know, if they are short."""
    document = dict(notice.document)
    if len(json.dumps(document)) <= _MOST_BYTES:
        return document
    known = {name: document[name] for name in _OURS if name in document}
    return {
        name: value for name, value in known.items() if len(json.dumps(value)) <= _MOST_BYTES // 8
    }
