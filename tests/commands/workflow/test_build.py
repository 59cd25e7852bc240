from pathlib import Path
from typing import Any

import pytest

from uwf_git.agents.limited_fork import RunLimits
from uwf_git.commands.workflow.build import (
    MOST_CONDITIONS,
    problems_of,
    read_with_checks,
    read_workflow_source,
    validate_workflow,
)
from uwf_git.errors import Problem
from uwf_git.model.definition.definition import InvalidWorkflow
from uwf_git.model.definition.graph import CheckCondition
from uwf_git.model.definition.roles import CheckSchema
from uwf_git.model.node import NotCanonical
from uwf_git.model.yaml_include import BadYaml, Includes


def test_problems_have_the_file_that_was_named() -> None:
    assert problems_of(BadYaml("no", line=2), "a/b.yaml") == [Problem("", "no", 2, "a/b.yaml")]
    (problem,) = problems_of(NotCanonical("x", "is too much"), "b.yaml")
    assert (problem.file, problem.line) == ("b.yaml", None)
    assert "is too much" in problem.message


SLOW = "/" + "(a|b[c-\U0001ffff])" * 800 + "/i"
SHORT = RunLimits(wall_s=0.5)


def check_all(conditions: list[str], schemas: list[Any], **said: Any) -> list[Any]:
    def read(condition: CheckCondition, schema: CheckSchema) -> list[Any]:
        return [*map(condition, conditions), *map(schema, schemas)]

    return read_with_checks(read, **said)


def test_one_limit_holds_for_all_and_what_hit_it_is_named() -> None:
    told = check_all(["a = 1", SLOW, SLOW + " "], [{}], limits=SHORT)

    assert (told[0], told[2], told[3]) == (None, None, [])
    assert "the check of the conditions and schemas took too much time" in told[1]

    large = {"required": [str(each) for each in range(400_000)]}
    told = check_all(["a = 1"], [{}, large], limits=SHORT)
    assert told[:2] == [None, []]
    assert "took too much time" in told[2][0].message


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


def test_a_wrong_over_is_no_condition_too_many() -> None:
    source = """\
name: x
root:
  type: loop
  over: "[{file: 1}]"
  as: plan
  nodes:
    - {type: agent, agentId: a, input: "Do ${plan.file}"}
"""
    with pytest.raises(InvalidWorkflow) as caught:
        read_workflow_source(source.encode(), Includes(lambda _path: b""))
    assert "too many" not in "".join(each.message for each in caught.value.problems)


def test_every_problem_has_its_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "roles.yaml").write_text("checker:\n  outputSchema: {type: objec}\n")
    source = "name: -x\nroles: !include parts/roles.yaml\nmoderator: [{from: $START, to: $END}]\n"

    problems = validate_workflow(
        source.encode(), path=str(tmp_path / "demo.yaml"), shown="flows/demo.yaml"
    ).problems

    found = [(each.file, each.line, each.path) for each in problems]
    assert found[0] == ("flows/demo.yaml", 1, "name")
    assert ("flows/parts/roles.yaml", 2, "roles.checker.outputSchema.type") in found
    assert ("flows/demo.yaml", 3, "moderator[0].to") not in found
