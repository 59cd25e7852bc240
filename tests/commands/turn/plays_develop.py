"""Starts `develop`, or plays it with plain functions and prints which costly modules that took."""

# ruff: noqa: T201 (the test reads what it prints)

import sys

from uwf_git import TaskRuntime

COSTLY = ("jsonata", "jsonschema", "uwf_git.engine.expression", "uwf_git.agents.limited_fork")

runtime = TaskRuntime(
    sys.argv[1],
    create=True,
    players={
        "planner": lambda _: {"summary": "s", "steps": [], "needsClarification": []},
        "developer": lambda _: {"summary": "s", "filesChanged": []},
        "reviewer": lambda _: {"approved": True, "summary": "s"},
    },
)
if sys.argv[2:]:
    task = runtime.task(sys.argv[2])
    print(task.step().role, task.query().next, task.run().stopped)
    print([name for name in COSTLY if name in sys.modules])
else:
    print(runtime.start("develop", "Do it.").task_id)
