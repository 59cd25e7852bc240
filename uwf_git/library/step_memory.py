"""The steps that Python functions have read: a step never changes, so each is read once.

A function that looks at all of its task's history would else read it anew at each turn.
"""

from collections.abc import Sequence
from dataclasses import replace

from uwf_git.engine.lazy_list import lazy_list
from uwf_git.engine.turn_context import AgentContext, Step
from uwf_git.model.frozen import freeze

MOST_BYTES = 64 * 1024 * 1024
"""How much is remembered; beyond it all is forgotten, and read again."""

# What a step takes in memory beside its content and its meta, about.
_STEP_BYTES = 2000


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
