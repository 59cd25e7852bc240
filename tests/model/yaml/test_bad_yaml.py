from uwf_git.model.problem import Problem
from uwf_git.model.yaml.include import BadIncludes, BadYaml


def test_line_and_file_precede_the_problem() -> None:
    assert BadYaml("no").message == "no"
    assert BadYaml("no", line=2).message == "line 2: no"
    assert BadYaml("no", line=2, file="a/b.yaml").message == "a/b.yaml:2: no"
    assert BadYaml("no", file="a/b.yaml").message == "a/b.yaml: no"


def test_error_has_its_problem_in_the_form_of_the_checks() -> None:
    assert BadYaml("no", line=2).problems == (Problem("", "no", 2, None),)


def test_several_problems_are_reported_in_their_order_and_the_first_in_the_message() -> None:
    found = (Problem("", "first", 4), Problem("", "second", 1, "a.yaml"))

    error = BadIncludes(found)

    assert (error.message, error.line) == ("line 4: first", 4)
    assert error.problems == found
    assert [each["message"] for each in error.facts["problems"]] == ["first", "second"]
    assert "problems" not in BadIncludes(found[:1]).facts
