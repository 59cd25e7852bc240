"""Receive the stop notices of the turn at work, while its thread is driven here.

A notice is recorded, and begins the grace after which a program that has left its report may be
ended. It makes no success and no failure.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Self

from uwf_git.commands.agent_run.step_dir import add_to_trace, read_step_dir
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.debug_log import debug
from uwf_git.plan.hooks import HOOK_VARIABLE
from uwf_git.plan.settings import PlanSettings
from uwf_git.plan.stop_notices import Notice, StopGrace, StopServer, TurnAtWork
from uwf_git.plan.story import STOP_NOTICE

_MOST_RECORDED = 20
_MOST_BYTES = 4096
_OURS = ("type", "phase", "timestamp", "thread", "head")


class StopWatch:
    """A stop server, and the grace of the turn that is at work; use it in a ``with``."""

    def __init__(self, settings: PlanSettings, *, port: int | None = None) -> None:
        """Listen where *settings* say; *port*, if it was typed, and no other."""
        self._grace = StopGrace(settings.stop_grace_s)
        self._recorded = 0
        self._step_dir = ""
        ports = (settings.port, 0) if port is None else (port,)
        self._server = StopServer(self._take, *ports, address=settings.address)
        self.where: Mapping[str, Any] = MappingProxyType(
            {"address": self._server.address, "port": self._server.port}
        )
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
            self._begin(turn, find_phase())
            try:
                return play(
                    turn._replace(environ={**turn.environ, **given}, may_end=self._grace.is_over)
                )
            finally:
                self._grace.begin(None)

        return play_attended

    def _begin(self, turn: Turn, phase: str) -> None:
        self._recorded, self._step_dir = 0, turn.run_dir.step_dir
        at_work = TurnAtWork(turn.thread, turn.snapshot.record.node, phase)
        # The last, since the server may tell of a stop as soon as the turn is known.
        self._grace.begin(at_work, has_stopped=_has_stopped(self._step_dir))

    def _take(self, notice: Notice) -> None:
        step_dir = self._step_dir
        is_taken = self._grace.take(notice)
        debug("7M3QX0ZK", "stop notice", is_taken=is_taken, notice=_shorten(notice))
        if is_taken and self._recorded < _MOST_RECORDED:
            self._recorded += 1
            # The turn has ended, or its agent has put something else there.
            with suppress(OSError):
                add_to_trace(step_dir, {"type": STOP_NOTICE, "notice": _shorten(notice)})


def _has_stopped(step_dir: str) -> bool:
    """Return whether the program of a turn that a dead driver began has told of its stop."""
    trace = read_step_dir(step_dir).trace or {}
    return any(event.get("type") == STOP_NOTICE for event in trace.get("events", ()))


def _shorten(notice: Notice) -> dict[str, Any]:
    """Return what was sent; of a long notice only the fields that we know, if they are short."""
    document = dict(notice.document)
    if len(json.dumps(document)) <= _MOST_BYTES:
        return document
    known = {name: document[name] for name in _OURS if name in document}
    return {
        name: value for name, value in known.items() if len(json.dumps(value)) <= _MOST_BYTES // 8
    }
