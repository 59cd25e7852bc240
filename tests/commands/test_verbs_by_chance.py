"""Verbs by chance on threads of flows by chance: what they record is sound, and no byte is free."""

import copy
import itertools
import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis
from commands.turns import drive
from commands.verify.flipping import (
    Recorded,
    check,
    flipped,
    kind_of,
    list_free,
    parts_of,
    put_over,
)
from commands.world import fails, make_world, replied
from fresh_store import fresh_store
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from seal import START_MS

from uwf_git.commands.control.answer import (
    PersonAnswer,
    answer_thread,
    kill_thread,
    patch_thread,
    pause_thread,
    read_question,
    resume_thread,
    retry_thread,
)
from uwf_git.commands.control.append import AppendRequest, append_to_thread
from uwf_git.commands.control.change_rules import AmendRequest, amend_thread, poke_thread
from uwf_git.commands.family import list_branches
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.receive import check_received
from uwf_git.commands.start import ForkRequest, fork_thread
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.errors import UwfError
from uwf_git.model.names import ThreadId
from uwf_git.store.git.hook_files import RefUpdate
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.threads.history import walk_history

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
_NODE = json.dumps([{"type": "agent", "agentId": "late"}]).encode()

# What a verb does with its chance does not change what hypothesis draws next: it shrinks the list
# of verbs, and no more.
_CHANCE = st.integers(0, 0xFFFF).map(random.Random)


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


class Threads(RuleBasedStateMachine):
    """The threads of one flow and one table, and whoever steers them; a verb may be refused."""

    def __init__(self, place: Path) -> None:
        super().__init__()
        ids = itertools.count(1)
        self.world = make_world(
            place,
            itertools.count(START_MS, 1000).__next__,
            lambda: ThreadId(f"01J000{next(ids):020d}"),
        )
        self.chance = random.Random(0)

    @initialize(chance=_CHANCE)
    def begin(self, chance: random.Random) -> None:
        self.world.put(_INNER)
        root = {"type": "sequential", "id": "top", "nodes": [_draw(chance), _draw(chance)]}
        self.flow: dict[str, Any] = {"name": "chance", "description": "Whatever.", "root": root}
        self.roots = [self.world.begun(_TABLE), self.world.begun(json.dumps(self.flow))]

    @rule(chance=_CHANCE, root=st.integers(0, 2), steps=st.integers(1, 5))
    def step_a_root(self, chance: random.Random, root: int, steps: int) -> None:
        self.chance = chance
        for _ in range(steps):
            with suppress(UwfError):
                self.world.step(self.roots[root % len(self.roots)], self.play)

    @rule(chance=_CHANCE)
    def step_a_new_branch(self, chance: random.Random) -> None:
        self.chance = chance
        found = list_branches(self.world.store, self.world.snapshot(chance.choice(self.roots)))
        new = [each.child.thread for each in found if each.head is None]
        if new:
            with suppress(UwfError):
                self.world.step(chance.choice(new), self.play)

    @rule(chance=_CHANCE)
    def steer(self, chance: random.Random) -> None:
        """Do something to some thread."""
        active = self.list_active()
        if not active:
            return
        self.chance = chance
        world, store, caller = self.world, self.world.store, self.world.caller
        thread = chance.choice(active)
        to = chance.choice(("top", "within", None, None))
        added = AppendRequest(thread, _NODE, to=to, default_agent="nobody")
        verbs: list[Callable[[], object]] = [
            lambda: world.step(thread, self.play),
            lambda: world.step(thread, self.play, command="human"),
            *[lambda: self._answer(active)] * 2,
            *[lambda: self._amend(chance.choice(self.roots))] * 2,
            lambda: patch_thread(store, caller, thread, {"n": chance.randrange(9)}),
            lambda: pause_thread(store, caller, thread),
            *[lambda: resume_thread(store, caller, thread)] * 2,
            lambda: retry_thread(store, caller, thread),
            lambda: poke_thread(store, caller, thread),
            lambda: append_to_thread(store, caller, added),
            lambda: self._fork(thread),
            lambda: show_thread(store, thread, full=True),
            lambda: chance.random() < 0.3 and kill_thread(store, caller, thread),
        ]
        with suppress(UwfError):
            chance.choice(verbs)()

    @rule(chance=_CHANCE)
    def change_a_byte(self, chance: random.Random) -> None:
        """Change one byte of one commit, its tree or its now.json: verify finds it."""
        store = self.world.store
        history = list(walk_history(store, self.world.tip(chance.choice(self.roots))))
        at = chance.randrange(len(history))
        parent = history[at + 1].commit.oid if at + 1 < len(history) else None
        made = Recorded(history[at].record.thread, history[at].commit.oid, parent)
        parts = parts_of(store, made.oid)
        name = chance.choice(sorted(parts))
        place = chance.randrange(len(parts[name]))
        kind = kind_of(history[at].record, parent)
        found = check(store, made, *put_over(parts, name, flipped(parts[name], place)))
        is_free = name == "commit" and place in list_free(kind, parts[name])
        assert found or is_free, (name, parts[name][max(0, place - 30) : place + 10])

    @invariant()
    def nothing_is_found(self) -> None:
        self.world.assert_whole()

    def teardown(self) -> None:
        """Drive each thread as far as it goes; a hub takes what came of it."""
        self.chance = random.Random(0)
        for root in getattr(self, "roots", []):
            for name in self.list_active():
                with suppress(UwfError):
                    self.world.resume(name)
            with suppress(UwfError):
                drive(self.world, root, self.play, jobs=3, sleep=lambda _seconds: None)
        self.nothing_is_found()
        refs = self.world.store.refs
        names = [folder + name for folder in (ACTIVE, ARCHIVE) for name in refs.names(folder)]
        updates = [RefUpdate(name, None, refs.find(name)) for name in names]
        hub = self.world.store._replace(refs=fresh_store().refs)
        assert check_received(hub, updates) == []

    def play(self, turn: Turn) -> Played:
        number = self.chance.randrange(10)
        return replied({"n": number}) if number else fails()(turn)

    def list_active(self) -> list[ThreadId]:
        return [ThreadId(name) for name in self.world.store.refs.names(ACTIVE)]

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

    def _fork(self, thread: ThreadId) -> None:
        world = self.world
        request = ForkRequest(thread, self.chance.choice((None, "0", "1", "2")), reason="why")
        forked = fork_thread(world.store, world.caller, request, thread=world.new_id())
        self.roots.append(forked.thread)


def test_whatever_verbs_record_is_sound_and_no_byte_of_it_can_be_another(tmp_path: Path) -> None:
    numbers = itertools.count()

    class Here(Threads):
        def __init__(self) -> None:
            place = tmp_path / str(next(numbers))
            place.mkdir()
            super().__init__(place)

    run_state_machine_as_test(Here, settings=hypothesis.settings(stateful_step_count=20))
