"""`uwf run`: a thread is driven to its end, step by step.

Owns: the loop. Knows nothing of: what a step does, who watches.
Always true: each step is a step like any other; a run that is cut short is continued by
`uwf thread step`, or run again by its id.
"""

from collections.abc import Callable
from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.thread_step import Stepped, StepRequest, step_thread
from uwf_git.store.store import Store


class Ran(NamedTuple):
    """A thread after a run."""

    last: Stepped
    steps: int
    """How many steps this run took."""


def drive_thread(
    store: Store,
    caller: Caller,
    request: StepRequest,
    *,
    max_steps: int | None,
    on_step: Callable[[Stepped], None],
) -> Ran:
    """Step the thread until it ends, or *max_steps* steps were taken.

    Raises:
        What ``step_thread`` raises; the steps before it stand.
    """
    taken = 0
    while True:
        stepped = step_thread(store, caller, request)
        if stepped.role is not None:
            taken += 1
        on_step(stepped)
        if stepped.role is None or taken == max_steps:
            return Ran(stepped, taken)
