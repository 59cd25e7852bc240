from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from commands.world import World

from uwf_git.agents.limited_fork import RunLimits, run_limited
from uwf_git.commands.workflow import build
from uwf_git.commands.workflow.build import (
    MOST_CONDITIONS,
    picture_workflow,
    problems_of,
    read_with_checks,
    read_workflow_source,
    validate_workflow,
)
from uwf_git.model.definition.definition import InvalidWorkflow
from uwf_git.model.definition.graph import CheckCondition
from uwf_git.model.definition.roles import CheckSchema
from uwf_git.model.node import NotCanonical
from uwf_git.model.problem import Problem
from uwf_git.model.workflow import END, START, Transition
from uwf_git.model.yaml.include import BadYaml, Includes
from uwf_git.store.objects.pack_file import ByteCache

FILES = {"prompts/check.md": b"Check.", "roles.yaml": b"checker: {systemPromt: x}\n"}


def test_problems_of_an_included_file_have_its_line() -> None:
    source = b"name: demo\nroles: !include roles.yaml\nmoderator: [{from: $START, to: $END}]\n"

    with pytest.raises(InvalidWorkflow) as caught:
        read_workflow_source(source, Includes(FILES.__getitem__))

    found = [(each.file, each.line, each.path) for each in caught.value.problems]
    assert ("roles.yaml", 1, "roles.checker.systemPromt") in found
    assert problems_of(caught.value, "flows/demo.yaml")[-1].file == "flows/roles.yaml"


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


GRAPH = {
    START: (Transition("writer", None),),
    "writer": (Transition("checker", None),),
    "checker": (Transition("writer", "meta.ok = false"), Transition(END, None)),
}


def test_a_picture_shows_the_roles_and_transitions_of_a_workflow(world: World) -> None:
    world.put()
    picture = picture_workflow(world.store, "demo", cwd=str(world.place))
    assert picture.subject.name == "demo"
    assert picture.subject.roles == {"writer": "Writes.", "checker": "Checks."}
    assert picture.subject.moves == GRAPH
    assert picture.found.file is None


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


@pytest.mark.parametrize(
    ("source", "line", "said"),
    [
        (b"", None, "the file is empty"),
        (b"a: 1\na: 2", 2, "is duplicated"),
        (b"x" * 2_000_000, None, "larger than 1 MiB"),
        (b"\xff", 1, "not UTF-8"),
        (b"a: 1\nb: !include c.md", 2, "standard input has no folder"),
    ],
)
def test_unreadable_file_is_one_problem(source: bytes, line: int | None, said: str) -> None:
    (problem,) = validate_workflow(source, path=None, shown="standard input").problems

    assert (problem.file, problem.line) == ("standard input", line)
    assert said in problem.message
