"""Players: Python functions that play roles in this process.

Owns: how a function is named in a thread's binding, what it is given, what may come back.
Knows nothing of: how a turn is recorded.
Always true: the binding says who played. `python:NAME` is no program, so that a thread which was
begun with functions is refused, and not played by something else, where they are not.
A function cannot be ended from outside: a pause or a kill waits until it returns.
"""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from uwf_git.agents.reply import AgentReply
from uwf_git.commands.mask_turn import mask_played
from uwf_git.commands.play_agent import agent_player
from uwf_git.commands.thread_context import get_context
from uwf_git.commands.turn import Played, Turn
from uwf_git.debug_log import debug
from uwf_git.engine.turn_context import AgentContext, parse_context
from uwf_git.errors import Refused, UwfError

PREFIX = "python:"


class RoleResult(Protocol):
    """What a player hands in; an ``AgentResult`` of the kit is one as well."""

    @property
    def meta(self) -> Any:
        """What routing sees; it has to fit the role's schema."""

    @property
    def content(self) -> str:
        """What people and the next roles read."""

    @property
    def usage(self) -> dict[str, Any] | None:
        """What it cost: numbers are added up over a task."""

    @property
    def state(self) -> dict[str, Any] | None:
        """A JSON merge patch for the task's state."""


PlayerFunction = Callable[[AgentContext], "RoleResult | Mapping[str, Any]"]
"""Plays a role: from the context of the turn to a result, or to the meta alone."""


@dataclass(frozen=True, slots=True)
class PlayerResult:
    """What a player hands in, where it is more than the meta."""

    meta: Mapping[str, Any]
    """What routing sees; it has to fit the role's schema."""

    content: str = ""
    """What people and the next roles read."""

    usage: dict[str, Any] | None = None
    """What it cost: numbers are added up over a task."""

    state: dict[str, Any] | None = None
    """A JSON merge patch for the task's state."""


class NoSuchPlayer(Refused):
    """The role is played by a function, and this runtime was not given it."""

    code = "no-such-player"

    def __init__(self, role: str, name: str) -> None:
        super().__init__(
            f"role {role} is played by the Python function {name!r}, which is not here",
            hint=f"give it: TaskRuntime(players={{{name!r}: …}}); or let a program play: "
            f"`uwf thread amend TASK --agent {role}=CMD`",
            role=role,
            player=name,
        )


class RolePlayer:
    """Plays turns: by the functions *players*, and by the commands of all other agents."""

    def __init__(self, players: Mapping[str, PlayerFunction], now_ms: Callable[[], int]) -> None:
        self._players, self._now_ms = players, now_ms
        self._play_command = agent_player(None)
        self.was_interrupted = False
        """Whether Ctrl-C ended the newest turn; somebody's pause or kill is none of that."""

    def play(self, turn: Turn) -> Played:
        """Play *turn*.

        Raises:
            NoSuchPlayer: a function plays it that is not here.
            What ``play_agent`` raises.
        """
        played = self._play(turn)
        kind = (played.error or {}).get("kind")
        self.was_interrupted = kind == "interrupted" and not played.is_stopped
        return played

    def _play(self, turn: Turn) -> Played:
        command: str = turn.agent.payload["command"]
        if not command.startswith(PREFIX):
            return self._play_command(turn)
        name = command.removeprefix(PREFIX)
        if name not in self._players:
            raise NoSuchPlayer(turn.role, name)
        return _play(self._players[name], turn, self._now_ms)


def _play(function: PlayerFunction, turn: Turn, now_ms: Callable[[], int]) -> Played:
    context = parse_context(get_context(turn.store, turn.thread, role=turn.role))
    started_ms = now_ms()
    error: dict[str, Any] | None = None
    hint, trace, reply = None, "", None
    try:
        reply = _read_result(function(context))
    except KeyboardInterrupt:
        error = {"kind": "interrupted", "message": "it was interrupted"}
    except UwfError as failure:
        error, hint = {"kind": failure.code, "message": failure.message}, failure.hint
    except Exception as failure:  # noqa: BLE001 (whatever an author's code raises, the try is recorded)
        said = " ".join(f"{type(failure).__name__}: {failure}".split())
        error, trace = {"kind": "raised", "message": said}, traceback.format_exc()
    debug("SZ7GSZ89", "function played", role=turn.role, error=error)
    played = Played(
        reply,
        started_ms,
        max(0, now_ms() - started_ms),
        error=error,
        hint=hint,
        stderr=trace.encode(errors="replace"),
    )
    return mask_played(played, turn.environ)


def _read_result(given: "RoleResult | Mapping[str, Any]") -> AgentReply:
    """Read what a function gave.

    Raises:
        TypeError: it is no result.
    """
    if isinstance(given, Mapping):
        return AgentReply(dict(given), "", "object")
    try:
        meta, content, usage, state = given.meta, given.content, given.usage, given.state
    except AttributeError:
        kind = type(given).__name__
        raise TypeError(f"a player gives a mapping or a PlayerResult, not {kind}") from None
    if not isinstance(content, str):
        raise TypeError(f"the content is of type {type(content).__name__}, not str")
    # A mapping of whatever class; what else it may be, the role's schema decides.
    plain = dict(meta) if isinstance(meta, Mapping) else meta
    return AgentReply(plain, content, "object", usage=usage, state=state)
