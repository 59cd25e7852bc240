import pytest

from uwf_git.commands.workflow.build import problems_of, read_workflow_source
from uwf_git.model.definition.definition import InvalidWorkflow
from uwf_git.model.node import NotCanonical
from uwf_git.model.problem import Problem
from uwf_git.model.yaml.include import BadYaml, Includes

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
