"""What is given to the library: arguments of public methods, and functions that play roles.

A class decorator does it for each public method, so a new method cannot forget it.
"""

import os
import traceback
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Parameter, Signature, isfunction, signature
from typing import Any, Protocol, TypeVar, Union, get_args, get_origin, is_typeddict

from uwf_git.agents.reply import AgentReply
from uwf_git.commands.agent_run.mask import Secrets, mask_played
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.inspect.context import build_context
from uwf_git.commands.turn.next_move import FUNCTION
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.debug_log import debug
from uwf_git.engine.lazy_list import lazy_list
from uwf_git.engine.masking import find_secrets
from uwf_git.engine.turn_context import AgentContext, Step, parse_context
from uwf_git.errors import BadUsage, Refused, StoreDamaged, UwfError
from uwf_git.model.workflow import freeze

Class = TypeVar("Class", bound=type)


class WrongArgument(BadUsage, TypeError):
    """An argument has the wrong type, or a value that it cannot have."""

    code = "wrong-argument"

    def __init__(self, what: str, problem: str) -> None:
        method = what.partition("(")[0]
        super().__init__(f"{what}: {problem}", hint=f"`help({method})` describes its arguments")


def check_arguments(cls: Class) -> Class:
    """Make ``__init__`` and each public method of *cls* check its arguments.

    The methods raise ``WrongArgument``, which is a ``TypeError`` as well.
    """
    for name, method in list(vars(cls).items()):
        if isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, _checked(method, cls.__name__ if name == "__init__" else None))
    return cls


def check_number(name: str, value: float | None, *, least: int) -> None:
    """Check that *value* is None, or not below *least*.

    Raises:
        WrongArgument
    """
    if value is not None and not value >= least:
        raise WrongArgument(name, f"{value} is less than {least}")


def _checked(method: Callable[..., Any], shown: str | None) -> Callable[..., Any]:
    taken = signature(method)
    what = shown or method.__qualname__

    @wraps(method)
    def call(*args: Any, **others: Any) -> Any:
        # Often there is nothing to check, and binding takes as long as reading a commit.
        if len(args) != 1 or others or len(taken.parameters) != 1:
            _check(what, taken, args, others)
        return method(*args, **others)

    return call


def _check(what: str, taken: Signature, args: tuple[Any, ...], others: Mapping[str, Any]) -> None:
    try:
        given = taken.bind(*args, **others).arguments
    except TypeError as error:
        raise WrongArgument(f"{what}()", str(error)) from None
    for name, value in given.items():
        hint = taken.parameters[name].annotation
        problem = None if hint is Parameter.empty else find_problem(value, hint)
        if problem is not None:
            raise WrongArgument(f"{what}({name}=…)", problem)


def find_problem(value: object, hint: Any) -> str | None:
    """Return why *value* is not of the type *hint*, in one line; None if it is."""
    choices = get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,)
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    is_path = any(get_origin(each) is os.PathLike for each in choices)
    if is_path and isinstance(text, str) and "\0" in text:
        return "no path holds a NUL"
    problems = [_find_problem(value, choice) for choice in choices]
    if None in problems:
        return None
    # Only a container's own problem says more than the type of the value.
    inner = next((each for each in problems if each), None)
    return inner or f"it is of type {type(value).__name__}, not {_describe(choices)}"


def _find_problem(value: object, hint: Any) -> str | None:
    """Return what is wrong inside *value*; "" if it is of another type; None if nothing is."""
    origin = types.NoneType if hint is None else get_origin(hint) or hint
    if is_typeddict(origin):
        origin, hint = Mapping, Mapping[str, Any]
    if origin in _FITS:
        return None if _FITS[origin](value) else ""
    if not isinstance(value, origin):
        return ""
    if origin is Mapping and isinstance(value, Mapping):
        return _find_in_mapping(value, get_args(hint))
    if get_args(hint) and isinstance(value, Collection):
        return _find_in_items(value, get_args(hint)[0])
    return None


_FITS: Mapping[Any, Callable[[object], bool]] = {
    Any: lambda _value: True,
    int: lambda value: isinstance(value, int) and not isinstance(value, bool),
    float: lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    Callable: callable,
    os.PathLike: lambda value: isinstance(value, os.PathLike) and isinstance(os.fspath(value), str),
}


def _find_in_mapping(value: Mapping[object, object], hints: tuple[Any, ...]) -> str | None:
    for name, each in value.items() if hints else ():
        if problem := find_problem(name, hints[0]):
            return f"one of its names is wrong: {problem}"
        if problem := find_problem(each, hints[1]):
            return f"its value of {str(name)[:60]!r} is wrong: {problem}"
    return None


def _find_in_items(value: Collection[object], hint: Any) -> str | None:
    if isinstance(value, str | bytes):
        return f"it is of type {type(value).__name__}, not a collection"
    problems = (find_problem(each, hint) for each in value)
    return next((f"one of its items is wrong: {each}" for each in problems if each), None)


def _describe(choices: tuple[Any, ...]) -> str:
    names = ("None" if each is types.NoneType else _name(each) for each in choices)
    return " or ".join(dict.fromkeys(names))


def _name(hint: Any) -> str:
    kind = get_origin(hint) or hint
    return str(getattr(kind, "__name__", kind))


# Players: Python functions that play roles in this process.
#
# A thread binds such a role to `python:NAME`, which is no program: a process without the function
# refuses the turn. A function cannot be ended from outside: pause and kill wait until it returns.

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
        error, hint = {"kind": failure.code, "message": failure.message}, failure.hint
    except Exception as failure:  # noqa: BLE001 (any exception of a player is recorded as a failed attempt)
        message = " ".join(f"{type(failure).__name__}: {failure}".split())
        error, trace = {"kind": "raised", "message": message}, traceback.format_exc()
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
