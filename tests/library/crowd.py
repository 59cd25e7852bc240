"""A task with many branches, which functions play, each for several steps."""

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from uwf_git import AgentContext, TaskRuntime, TaskStep

CROWD = """\
name: crowd
description: Many items, several passes each.
root:
  type: sequential
  nodes:
    - {type: agent, agentId: planner}
    - type: map
      name: each
      over: state.items
      output: sums
      nodes:
        - type: loop
          maxIterations: %d
          nodes:
            - {type: agent, agentId: worker, input: "${item}"}
    - {type: agent, agentId: closer}
"""


class Crowd:
    """The players, and what they have seen."""

    def __init__(self, store: str, *, branches: int, steps: int) -> None:
        self.branches, self.steps = branches, steps
        self.played: Counter[tuple[Any, Any]] = Counter()
        self.stepped: list[TaskStep] = []
        self.at_once = 0
        self._first = threading.Barrier(1)
        self._at_work = 0
        self._lock = threading.Lock()
        players = {"planner": self.plan, "worker": self.work, "closer": self.close}
        self.runtime = TaskRuntime(store, players=players)
        self.task = self.runtime.start(CROWD % steps, "Add up.")

    def plan(self, _context: AgentContext) -> Mapping[str, Any]:
        return {"items": list(range(self.branches))}

    def work(self, context: AgentContext) -> Mapping[str, Any]:
        """Play one pass of one item."""
        with self._lock:
            self._at_work += 1
            self.at_once = max(self.at_once, self._at_work)
        if context.iteration == 0 and context.input < self._first.parties:
            # As many as may work at once do.
            self._first.wait(60)
        assert [step.role for step in context.steps][:1] == ["planner"]
        assert context.iteration is not None
        assert len(context.steps) == context.iteration + 1
        with self._lock:
            self.played[context.input, context.iteration] += 1
            self._at_work -= 1
        return {"sum": context.state.get("sum", 0) + context.input}

    def close(self, context: AgentContext) -> Mapping[str, Any]:
        return {"total": sum(each["sum"] for each in context.state["sums"])}

    def listen(self, heard: list[str]) -> None:
        """Follow the task until it ends, and add the ids of its events to those *heard*."""
        heard += (event.id for event in self.task.events(since=heard[-1], follow=True))

    def check(self, jobs: int) -> None:
        """Run the task, and check that each step was played once and nothing was lost."""
        self._first = threading.Barrier(jobs)
        heard = [event.id for event in self.task.events()]
        listener = threading.Thread(target=self.listen, args=(heard,))
        listener.start()
        ran = self.task.run(jobs=jobs, on_step=self.stepped.append)
        listener.join(60)

        count = self.branches * self.steps
        assert (ran.stopped, ran.status, ran.steps) == ("end", "completed", count + 2)
        assert self.played == {
            (item, turn): 1 for item in range(self.branches) for turn in range(self.steps)
        }
        assert self.at_once == jobs
        assert self.task.state["total"] == self.steps * sum(range(self.branches))
        by_task = Counter(step.task_id for step in self.stepped if step.role == "worker")
        assert set(by_task.values()) == {self.steps}
        assert len(by_task) == self.branches
        events = list(self.task.events())
        ids = [event.id for event in events]
        assert len(ids) == len(set(ids))
        assert heard == ids
        kinds = Counter(event.type for event in events)
        assert (kinds["node:enter"], kinds["node:exit"]) == (count + 2, count + 2)
        assert kinds["loop:iteration"] == count
