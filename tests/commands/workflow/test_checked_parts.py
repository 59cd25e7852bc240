from typing import Any
from unittest import mock

import pytest

from uwf_git.agents.limited_fork import RunLimits, run_limited
from uwf_git.commands.workflow import build
from uwf_git.commands.workflow.build import MOST_CONDITIONS, read_with_checks, read_workflow_source
from uwf_git.model.definition.definition import InvalidWorkflow
from uwf_git.model.definition.graph import CheckCondition
from uwf_git.model.definition.roles import CheckSchema
from uwf_git.model.problem import Problem
from uwf_git.model.yaml.include import Includes
from uwf_git.store.objects.pack_file import ByteCache

SLOW = "/" + "(a|b[c-\U0001ffff])" * 800 + "/i"
SHORT = RunLimits(wall_s=0.5)


def check_all(conditions: list[str], schemas: list[Any], **said: Any) -> list[Any]:
    def read(condition: CheckCondition, schema: CheckSchema) -> list[Any]:
        return [*map(condition, conditions), *map(schema, schemas)]

    return read_with_checks(read, **said)


def test_each_part_is_told_what_is_wrong_with_it() -> None:
    told = check_all(["a = 1", "(", "a = 1"], [{"type": "object"}, {"type": 7}, True])

    assert (told[0], told[2], told[3], told[5]) == (None, None, [], [])
    assert told[1] is not None
    assert [each.path for each in told[4]] == ["type"]
    assert isinstance(told[4][0], Problem)


def test_one_limit_holds_for_all_and_what_hit_it_is_named() -> None:
    told = check_all(["a = 1", SLOW, SLOW + " "], [{}], limits=SHORT)

    assert (told[0], told[2], told[3]) == (None, None, [])
    assert "the check of the conditions and schemas took too much time" in told[1]

    large = {"required": [str(each) for each in range(400_000)]}
    told = check_all(["a = 1"], [{}, large], limits=SHORT)
    assert told[:2] == [None, []]
    assert "took too much time" in told[2][0].message


def test_equal_parts_are_checked_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    run = mock.Mock(wraps=run_limited)
    monkeypatch.setattr(build, "_checked", ByteCache(1 << 20))
    monkeypatch.setattr(build, "run_limited", run)
    first = check_all(["b = 1", "("], [{"type": 7}])
    assert check_all(["b = 1", "("], [{"type": 7}]) == first
    assert run.call_count == 1
    check_all(["b = 1"], [{"type": 7}])
    check_all(["b = 1"], [{"type": "7"}])
    check_all(["b = 1"], [{"type": "7"}], limits=SHORT)
    assert run.call_count == 4
    # What hit a limit may pass the next time.
    for _again in range(2):
        check_all([SLOW], [], limits=SHORT)
    assert run.call_count == 6
    # Nothing has room.
    monkeypatch.setattr(build, "_checked", ByteCache(1))
    for _again in range(2):
        check_all(["b = 1"], [])
    assert run.call_count == 8


def test_number_of_conditions_is_limited() -> None:
    ways = "".join(
        f"  - {{from: $START, to: $END, condition: a = {number}}}\n"
        for number in range(MOST_CONDITIONS + 2)
    )
    source = f"name: x\nroles: {{}}\nmoderator:\n{ways}"

    with pytest.raises(InvalidWorkflow) as caught:
        read_workflow_source(source.encode(), Includes(lambda _path: b""))

    last = [each for each in caught.value.problems if "one condition too many" in each.message]
    assert [each.line for each in last] == [MOST_CONDITIONS + 4, MOST_CONDITIONS + 5]
