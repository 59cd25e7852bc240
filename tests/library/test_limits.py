import pytest
from commands.world import DEMO

from uwf_git import Limits, Refused, TaskRuntime
from uwf_git.library.starting import to_limit_names
from uwf_git.model.limits import LIMITS


def test_every_limit_has_a_python_name() -> None:
    every = Limits(max_steps=1, max_execution_time=2, max_tokens=3, max_cost=None)

    assert sorted(to_limit_names(every)) == sorted(LIMITS)
    assert set(every) == set(Limits.__annotations__)
    assert to_limit_names(every)["maxCost"] is None
    assert to_limit_names(None) == {}


def test_limit_holds(runtime: TaskRuntime) -> None:
    task = runtime.start(DEMO, "Do it.", limits={"max_steps": 1})

    assert task.run().stopped == "limit"
    with pytest.raises(Refused, match="is at its limit: 1 of 1 steps"):
        task.step()
    task.amend(limits={"max_steps": None})
    assert task.run().stopped == "end"


def test_unknown_limit_is_refused(runtime: TaskRuntime) -> None:
    with pytest.raises(Refused, match="max_stepps is no limit"):
        runtime.start(DEMO, "Do it.", limits={"max_stepps": 1})  # type: ignore[arg-type]  # that is what is tried
