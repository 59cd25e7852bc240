"""Flows by chance, steered by chance: whatever the commands record, verify and hubs take."""

import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from commands.flow_runs import drive
from commands.world import World, fails, replied
from conftest import Draws
from fresh_store import fresh_store

from uwf_git.commands.control.append import AppendRequest, append_to_thread
from uwf_git.commands.control.kill import kill_thread
from uwf_git.commands.control.patch import patch_thread
from uwf_git.commands.control.pause import pause_thread
from uwf_git.commands.control.poke import poke_thread
from uwf_git.commands.control.resume import resume_thread
from uwf_git.commands.control.retry import retry_thread
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.lifecycle.fork import ForkRequest, fork_thread
from uwf_git.commands.receive.rules import RefUpdate, check_received
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.verify.verify import verify
from uwf_git.errors import UwfError
from uwf_git.model.thread_id import ThreadId

_FOLDERS = ("refs/threads/", "refs/archive/")
_HOLDING = ("sequential", "parallel", "map", "loop", "conditional")
_MOST_LEVELS = 4


def _draw(chance: random.Random, level: int = 0) -> dict[str, Any]:
    """Return a node."""
    kind = chance.choice(("agent", "agent", *(_HOLDING if level < _MOST_LEVELS else ())))
    node: dict[str, Any] = {"type": kind}
    if chance.random() < 0.3:
        node["onError"] = "continue"
    if kind == "agent":
        return node | {"agentId": chance.choice("abcd"), "retries": chance.randint(0, 1)}
    node["nodes"] = [_draw(chance, level + 1) for _ in range(chance.randint(1, 3))]
    more: dict[str, dict[str, Any]] = {
        "parallel": {"merge": "last", "join": chance.choice(("all", "all", "any"))},
        "map": {"over": json.dumps([1, 2][: chance.randint(0, 2)])},
        "loop": {"maxIterations": chance.randint(1, 2), "condition": "(state.n ?? 0) % 2 === 1"},
        "conditional": {"condition": "(state.n ?? 0) > 4"},
    }
    return node | more.get(kind, {})


class _Crowd:
    """The threads of one flow, and who steers them."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self.world, self.chance = world, chance
        root = {"type": "sequential", "id": "top", "nodes": [_draw(chance), _draw(chance)]}
        flow = {"name": "chance", "description": "Whatever.", "root": root}
        self.roots = [world.begun(json.dumps(flow))]

    def play(self, turn: Turn) -> Played:
        number = self.chance.randrange(10)
        return replied({"n": number}) if number else fails()(turn)

    def steer(self) -> None:
        """Do something to some thread; it may be refused."""
        world, store, caller = self.world, self.world.store, self.world.caller
        active = [ThreadId(name) for name in store.refs.names(_FOLDERS[0])]
        if not active:
            return
        thread, root = self.chance.choice(active), self.chance.choice(self.roots)
        node = json.dumps([{"type": "agent", "agentId": "late"}]).encode()
        added = AppendRequest(
            thread, node, to=self.chance.choice(("top", None)), default_agent="nobody"
        )
        verbs: list[Callable[[], object]] = [
            *[lambda: world.step(root, self.play)] * 9,
            *[lambda: world.step(thread, self.play)] * 3,
            lambda: patch_thread(store, caller, thread, {"n": self.chance.randrange(9)}),
            lambda: pause_thread(store, caller, thread),
            *[lambda: resume_thread(store, caller, thread)] * 2,
            lambda: retry_thread(store, caller, thread),
            lambda: poke_thread(store, caller, thread),
            lambda: append_to_thread(store, caller, added),
            lambda: self._fork(thread),
            lambda: show_thread(store, thread, full=True),
            lambda: self.chance.random() < 0.3 and kill_thread(store, caller, thread),
        ]
        with suppress(UwfError):
            self.chance.choice(verbs)()

    def finish(self) -> None:
        """Drive each thread as far as it goes."""
        store, caller = self.world.store, self.world.caller
        for root in self.roots:
            for name in [ThreadId(each) for each in store.refs.names(_FOLDERS[0])]:
                with suppress(UwfError):
                    resume_thread(store, caller, name)
            with suppress(UwfError):
                drive(self.world, root, self.play, jobs=3, sleep=lambda _seconds: None)

    def _fork(self, thread: ThreadId) -> None:
        world = self.world
        request = ForkRequest(thread, reason="why")
        forked = fork_thread(world.store, world.caller, request, thread=world.new_id())
        self.roots.append(forked.thread)


def test_whatever_is_recorded_is_sound(world: World, draws: Draws) -> None:
    for _ in draws.rounds(12):
        crowd = _Crowd(world, draws.chance)
        for _ in range(draws.chance.randint(10, 40)):
            crowd.steer()
        crowd.finish()

    refs = world.store.refs
    names = [folder + name for folder in _FOLDERS for name in refs.names(folder)]
    updates = [RefUpdate(name, None, refs.find(name)) for name in names]
    assert verify(world.store, []).troubles == ()
    assert check_received(world.store._replace(refs=fresh_store().refs), updates) == []
