"""Whatever a thread is told and whatever is done to it, its history is made again byte for byte."""

import random
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from uwf_git import AgentContext, TaskFilter, TaskRuntime, UwfError
from uwf_git.commands.verify.verify import verify
from uwf_git.library.players import PlayerResult
from uwf_git.store.store import open_store

VALUES = (0, -0.0, 1.0, 0.5, 1e16, 1e21, 2**53 + 1, 10**30, 5e-324, True, None, "", "\U0001f600")
TEXTS = ("", "é", "e\u0301", "\u2028", "\x00", "a\r\nb", "Uwf-Kind: x", "---\n", " a ", "\n#x")
AGENT = {"type": "agent", "agentId": "one"}
FLOWS: tuple[list[dict[str, Any]], ...] = (
    [AGENT, {"type": "loop", "condition": "iteration < 3", "nodes": [AGENT]}],
    [{"type": "parallel", "nodes": [AGENT, AGENT], "merge": "last", "onError": "continue"}, AGENT],
    [{"type": "map", "over": "state.a", "as": "it", "output": "b", "nodes": [AGENT, AGENT]}],
)
CHANGES = ("step", "step", "patch", "patch", "pause", "resume", "retry", "append", "amend", "fork")


def any_object(chance: random.Random, value: Any) -> dict[str, Any]:
    """Return one of few objects, so that equal ones recur, their keys in another order."""
    members = {"a": [value, 1], "b": {"y": value, "x": 2}, "c": value}
    if chance.random() < 0.3:
        members = dict.fromkeys(members)
    return dict(chance.sample(list(members.items()), chance.randint(2, 3)))


@pytest.mark.parametrize("value", VALUES)
def test_any_history_verifies(store: str, value: Any) -> None:
    chance, done = random.Random(VALUES.index(value)), set()

    def play(_context: AgentContext) -> Mapping[str, Any] | PlayerResult:
        assert chance.random() > 0.05
        usage = {"cost": chance.choice((0.5, 1.5, 0.1, 2.0)), "more": any_object(chance, value)}
        meta, state = any_object(chance, value), any_object(chance, value)
        return PlayerResult(meta, chance.choice(TEXTS), usage, state)

    runtime = TaskRuntime(store, players={"one": play})
    for nodes in FLOWS:
        root = {"type": "sequential", "nodes": nodes}
        task = runtime.start({"name": "any", "initialState": {"a": [1, 2]}, "root": root}, "Do it.")
        for _ in range(30):
            tasks = [task, *runtime.list(TaskFilter(parent=task.task_id))]
            at = runtime.task(chance.choice(tasks).task_id)
            change, why = chance.choice(CHANGES), chance.choice(TEXTS)
            with suppress(UwfError):
                if change == "patch":
                    at.update_state(any_object(chance, value))
                elif change == "append":
                    at.append_nodes([AGENT], why)
                elif change == "amend":
                    at.amend(agents={"one": {"timeout": chance.randint(1, 9)}}, reason=why)
                elif change == "fork":
                    at.fork(reason=why).step()
                else:
                    getattr(at, change)(*[why] * (change != "step"))
                done.add(change)
    assert done >= {"step", "patch", "fork"}
    assert verify(open_store(store), []).troubles == ()
