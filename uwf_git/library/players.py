"""Players: Python functions that play roles in this process.

A thread binds such a role to `python:NAME`, which is no program: a process without the function
refuses the turn. A function cannot be ended from outside: pause and kill wait until it returns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from traceback import TracebackException
from typing import Any, Protocol

from uwf_git.agents.command_line import AgentReply, on_one_line
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.run_checks import Secrets, mask_played
from uwf_git.commands.inspect.context import build_context
from uwf_git.commands.turn.next_move import FUNCTION
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.debug_log import debug
from uwf_git.engine.masking import find_secrets
from uwf_git.engine.moderator import lazy_list
from uwf_git.engine.turn_context import AgentContext, Step, parse_context
from uwf_git.errors import Refused, StoreDamaged, UwfError
from uwf_git.model.workflow import freeze

MOST_BYTES = 64 * 1024 * 1024
"""How much is remembered; beyond it all is forgotten, and read again."""

# What a step takes in memory beside its content and its meta, about.
_STEP_BYTES = 2000


class RoleResult(Protocol):
    """The result of a player; an ``AgentResult`` of the kit is one as well."""

    @property
    def meta(self) -> Any:
        """The fields that routing reads; they have to fit the role's schema."""

    @property
    def content(self) -> str:
        """The text for people and the next roles."""

    @property
    def usage(self) -> dict[str, Any] | None:
        """What the turn cost; numbers are summed over the task."""

    @property
    def state(self) -> dict[str, Any] | None:
        """A JSON merge patch for the task's state."""


PlayerFunction = Callable[[AgentContext], "RoleResult | Mapping[str, Any]"]
"""A function that plays a role: context of the turn in, result (or its meta alone) out."""


@dataclass(frozen=True, slots=True)
class PlayerResult:
    """The result of a player that returns more than the meta."""

    meta: Mapping[str, Any]
    """The fields that routing reads; they have to fit the role's schema."""

    content: str = ""
    """The text for people and the next roles."""

    usage: dict[str, Any] | None = None
    """What the turn cost; numbers are summed over the task."""

    state: dict[str, Any] | None = None
    """A JSON merge patch for the task's state."""


class RolePlayer:
    """Plays turns, by a function of *players* or by the agent's command."""

    def __init__(
        self,
        players: Mapping[str, PlayerFunction],
        now_ms: Callable[[], int],
        memory: "StepMemory",
    ) -> None:
        self._players, self._now_ms, self._memory = players, now_ms, memory
        self._play_command = agent_player(None)
        self.was_interrupted = False
        """Whether Ctrl-C ended a turn, rather than a pause or a kill."""

    def play(self, turn: Turn) -> Played:
        """Play *turn*.

        Raises:
            Refused: the role's function is not in *players*.
        """
        played = self._play(turn)
        kind = (played.error or {}).get("kind")
        # Never back to False: branches are played at once.
        self.was_interrupted |= kind == "interrupted" and not played.is_stopped
        return played

    def _play(self, turn: Turn) -> Played:
        command: str = turn.agent.payload["command"]
        if turn.answered is not None or not command.startswith(FUNCTION):
            return self._play_command(turn)
        name = command.removeprefix(FUNCTION)
        if name not in self._players:
            raise Refused(
                f"role {turn.role} is played by the Python function {name!r}, which is not in "
                "this process",
                code="no-such-player",
                hint=f"pass it: TaskRuntime(players={{{name!r}: …}}); or let a program play: "
                f"`uwf thread amend TASK --agent {turn.role}=CMD`",
                role=turn.role,
                player=name,
            )
        context = parse_context(build_context(turn.store, turn.snapshot, turn.role, at=turn.at))
        return _call(self._players[name], turn, self._memory.extend(context), self._now_ms)


def _call(
    function: PlayerFunction, turn: Turn, context: AgentContext, now_ms: Callable[[], int]
) -> Played:
    started_ms = now_ms()
    error: dict[str, Any] | None = None
    hint, trace, reply = None, "", None
    try:
        reply = _read_result(function(context))
    except KeyboardInterrupt:
        error = {"kind": "interrupted", "message": "it was interrupted"}
    except StoreDamaged:
        # The task's own steps are read when the function accesses them: no fault of the function.
        raise
    except UwfError as failure:
        message, hint = on_one_line(str(failure.message)), failure.hint
        error = {"kind": failure.code, "message": message}
    except BaseException as failure:  # noqa: BLE001 (any exception of a player is recorded as a failed attempt)
        # Its text is there even if the exception has none: `str` may raise as well.
        told = TracebackException.from_exception(failure)
        message = on_one_line(f"{type(failure).__name__}: {told}")
        error, trace = {"kind": "raised", "message": message}, "".join(told.format())
    debug("SZ7GSZ89", "function played", role=turn.role, error=error)
    played = Played(
        reply,
        started_ms,
        max(0, now_ms() - started_ms),
        error=error,
        hint=hint,
        stderr=trace.encode(errors="replace"),
    )
    return mask_played(played, Secrets(find_secrets(turn.environ)))


def _read_result(given: "RoleResult | Mapping[str, Any]") -> AgentReply:
    """Convert what a function returned.

    Raises:
        TypeError: it is no result.
    """
    if isinstance(given, Mapping):
        return AgentReply(dict(given), "", "object")
    try:
        meta, content, usage, state = given.meta, given.content, given.usage, given.state
    except AttributeError:
        kind = type(given).__name__
        raise TypeError(f"a player returns a mapping or a PlayerResult, not {kind}") from None
    if not isinstance(content, str):
        raise TypeError(f"the content is of type {type(content).__name__}, not str")
    for name, value in (("usage", usage), ("state", state)):
        if not isinstance(value, Mapping | None):
            raise TypeError(f"the {name} is of type {type(value).__name__}, not dict")
    # Any mapping class; the role's schema checks other types.
    plain = dict(meta) if isinstance(meta, Mapping) else meta
    return AgentReply(plain, content, "object", usage=_as_dict(usage), state=_as_dict(state))


def _as_dict(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if given is None else dict(given)


# The steps that functions have read: a step never changes, so each is read once. A function that
# looks at all of its task's history would else read it anew at each turn.


class StepMemory:
    """The steps of tasks, by their places."""

    def __init__(self) -> None:
        self._bytes = 0
        self._tasks: dict[str, dict[int, Step]] = {}

    def extend(self, context: AgentContext) -> AgentContext:
        """Return *context* with steps that are read only if they never were; all are shared.

        Their ``meta`` and ``usage`` cannot be changed.
        """
        task, steps = context.thread_id, context.steps
        is_checked = False

        def read(place: int) -> Step:
            nonlocal is_checked
            if not is_checked:
                self._check(task, steps)
                is_checked = True
            known = self._tasks.setdefault(task, {})
            found = known.get(place)
            return self._keep(known, place, steps[place]) if found is None else found

        return replace(context, steps=lazy_list(len(steps), read))

    def _check(self, task: str, steps: Sequence[Step]) -> None:
        """Forget the steps of *task* if one was taken back: a hash tells of all before it."""
        known = self._tasks.get(task)
        if not known:
            return
        newest = max(known)
        if newest >= len(steps) or steps[newest].hash != known[newest].hash:
            self._bytes -= sum(map(_size, known.values()))
            del self._tasks[task]

    def _keep(self, known: dict[int, Step], place: int, step: Step) -> Step:
        shared = replace(step, meta=freeze(step.meta), usage=freeze(step.usage))
        self._bytes += _size(shared)
        if self._bytes > MOST_BYTES:
            self._tasks.clear()
            self._bytes = 0
        else:
            known[place] = shared
        return shared


def _size(step: Step) -> int:
    return _STEP_BYTES + len(step.content) + len(repr(step.meta))
