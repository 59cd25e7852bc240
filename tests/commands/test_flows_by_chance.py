"""Flows by chance, steered by chance: whatever the commands record, verify and hubs take."""

import copy
import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from commands.flow_runs import drive
from commands.world import World, fails, replied
from conftest import Draws
from fresh_store import fresh_store

from uwf_git.commands.control.answer import PersonAnswer, answer_thread, read_question
from uwf_git.commands.control.append import AppendRequest, append_to_thread
from uwf_git.commands.control.change_rules import AmendRequest, amend_thread, poke_thread
from uwf_git.commands.control.steer import (
    kill_thread,
    patch_thread,
    pause_thread,
    resume_thread,
    retry_thread,
)
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.lifecycle.fork import ForkRequest, fork_thread
from uwf_git.commands.receive.receive import check_received
from uwf_git.commands.receive.ref_update import RefUpdate
from uwf_git.commands.split.family import list_branches
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.verify.verify import verify
from uwf_git.errors import UwfError
from uwf_git.model.names import ThreadId

_FOLDERS = ("refs/threads/", "refs/archive/")
_HOLDING = ("sequential", "parallel", "map", "loop", "conditional")
_MOST_LEVELS = 4

_INNER = """\
name: inner
root: {type: loop, maxIterations: 2, nodes: [{type: agent, agentId: e}]}
"""
_TABLE = """\
name: table
roles: {f: {description: One.}, g: {description: Two., workflow: inner}}
moderator:
  - {from: $START, to: f}
  - {from: f, to: g}
  - {from: g, to: f, when: depth < 4}
  - {from: g, to: $END}
"""


def _draw(chance: random.Random, level: int = 0) -> dict[str, Any]:
    """Return a node; some containers are called `within`."""
    inner = (*_HOLDING, "workflow") if level < _MOST_LEVELS else ()
    kind = chance.choice(("agent", "agent", *inner))
    node: dict[str, Any] = {"type": kind}
    if chance.random() < 0.3:
        node["onError"] = "continue"
    if kind == "agent":
        return node | {"agentId": chance.choice("abcd"), "retries": chance.randint(0, 1)}
    if kind == "workflow":
        return node | {"use": chance.choice(("inner", "table"))}
    node["nodes"] = [_draw(chance, level + 1) for _ in range(chance.randint(1, 3))]
    more: dict[str, dict[str, Any]] = {
        "parallel": {"merge": "last", "join": chance.choice(("all", "all", "any"))},
        "map": {"over": json.dumps([1, 2][: chance.randint(0, 2)])},
        "loop": {"maxIterations": chance.randint(1, 2), "condition": "(state.n ?? 0) % 2 === 1"},
        "conditional": {"condition": "(state.n ?? 0) > 4"},
    }
    return node | more.get(kind, {}) | {"name": chance.choice(("within", kind))}


class _Crowd:
    """The threads of one flow, and who steers them."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self.world, self.chance = world, chance
        world.put(_INNER)
        self.roots = [world.begun(_TABLE)]
        root = {"type": "sequential", "id": "top", "nodes": [_draw(chance), _draw(chance)]}
        self.flow: dict[str, Any] = {"name": "chance", "description": "Whatever.", "root": root}
        self.roots.append(world.begun(json.dumps(self.flow)))

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
        to = self.chance.choice(("top", "within", None, None))
        added = AppendRequest(thread, node, to=to, default_agent="nobody")
        verbs: list[Callable[[], object]] = [
            *[lambda: world.step(root, self.play)] * 9,
            *[lambda: world.step(thread, self.play)] * 3,
            lambda: world.step(thread, self.play, command="human"),
            *[lambda: self._answer(active)] * 2,
            *[lambda: self._amend(root)] * 2,
            *[lambda: self._step_new_branch(root)] * 2,
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

    def _answer(self, active: list[ThreadId]) -> None:
        store, caller = self.world.store, self.world.caller
        waiting = [each for each in active if self.world.snapshot(each).record.status == "waiting"]
        thread = self.chance.choice(waiting or active)
        question = read_question(store, caller, thread, default=None)
        answer_thread(store, caller, question, PersonAnswer({"n": self.chance.randrange(9)}))

    def _amend(self, thread: ThreadId) -> None:
        """Move a thread to the flow with a node more or less somewhere, or with other bounds."""
        flow = copy.deepcopy(self.flow)
        lists = [flow["root"]["nodes"]]
        for nodes in lists:
            lists += [node["nodes"] for node in nodes if "nodes" in node]
        nodes = self.chance.choice(lists)
        if self.chance.random() < 0.5:
            nodes.insert(self.chance.randint(0, len(nodes)), _draw(self.chance, _MOST_LEVELS))
        else:
            nodes[self.chance.randrange(len(nodes))] = _draw(self.chance, _MOST_LEVELS - 1)
        workflow = self.world.put(json.dumps(flow)).workflow
        asked = AmendRequest(thread, workflow=workflow, default_agent="nobody")
        amend_thread(self.world.store, self.world.caller, asked)

    def _step_new_branch(self, root: ThreadId) -> None:
        found = list_branches(self.world.store, self.world.snapshot(root))
        new = [each.child.thread for each in found if each.head is None]
        if new:
            self.world.step(self.chance.choice(new), self.play)

    def _fork(self, thread: ThreadId) -> None:
        world = self.world
        at = self.chance.choice((None, "0", "1", "2"))
        request = ForkRequest(thread, at, reason="why")
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
