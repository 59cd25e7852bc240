import pytest
from workflow_file import SOUND, problems_of

from uwf_git.model.definition.definition import (
    Findings,
    InvalidWorkflow,
    dotted,
    find_nearest,
    shown,
    yaml_kind,
)
from uwf_git.model.problem import Problem
from uwf_git.model.yaml.reader import parse_yaml


def found(findings: Findings) -> tuple[Problem, ...]:
    with pytest.raises(InvalidWorkflow) as caught:
        findings.raise_if_any()
    return caught.value.problems


def test_nothing_found_is_no_error() -> None:
    Findings(parse_yaml("a: 1")).raise_if_any()


def test_problems_come_in_the_order_of_their_lines() -> None:
    findings = Findings(parse_yaml("a: 1\nb: 2\nc: 3"))
    for key in "cab":
        findings.add((key,), f"{key} is wrong")
    assert [(each.line, each.path) for each in found(findings)] == [(1, "a"), (2, "b"), (3, "c")]


def test_missing_part_has_the_line_of_where_it_should_be() -> None:
    findings = Findings(parse_yaml("a: 1\nb:\n  c: 2"))
    findings.add(("b", "d", 3), "is missing")
    assert found(findings) == (Problem("b.d[3]", "is missing", 2),)


@pytest.mark.parametrize(
    ("inner", "path", "line"),
    [
        ("", "s", 1),
        ("type", "s.type", 2),
        ("x.y", "s.x.y", 3),
        ("x.y.z", "s.x.y.z", 4),
        ("list[1].w", "s.list[1].w", 7),
        ("list[9]", "s.list[9]", 5),
        ("[0]", "s[0]", 1),
        ("gone.deep", "s.gone.deep", 1),
    ],
)
def test_place_below_a_value_has_its_line(inner: str, path: str, line: int) -> None:
    text = "s:\n  type: 1\n  x.y:\n    z: 2\n  list:\n  - 3\n  - w: 4\n"
    findings = Findings(parse_yaml(text))
    findings.add_below(("s",), Problem(inner, "is wrong"))
    assert found(findings) == (Problem(path, "is wrong", line),)


def test_path_is_written_as_people_write_it() -> None:
    assert dotted(("moderator", "graph", 2, "transitions", 0, "condition")) == (
        "moderator.graph[2].transitions[0].condition"
    )
    assert dotted(("roles", "a b", "schema")) == "roles['a b'].schema"
    assert dotted(()) == ""


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "empty"),
        (True, "true"),
        (False, "false"),
        (1, "a number"),
        (1.5, "a number"),
        ("x", "text"),
        ([], "a list"),
        ({}, "a mapping"),
    ],
)
def test_kinds_have_names_that_people_use(value: object, words: str) -> None:
    assert yaml_kind(value) == words


@pytest.mark.parametrize("word", ["system_prompt", "systemprompt", "SystemPrompt", "prompt"])
def test_nearest_word_is_found_in_any_spelling(word: str) -> None:
    assert find_nearest(word, ["name", "systemPrompt"]) == "systemPrompt"


def test_word_that_is_near_nothing_has_no_nearest() -> None:
    assert find_nearest("zzz", ["name", "systemPrompt"]) is None


def test_long_word_is_shortened_in_messages() -> None:
    assert len(shown("x" * 1_000_000)) < 110


def test_file_with_endless_problems_is_given_up() -> None:
    keys = "\n".join(f"wrong{number}: 1" for number in range(50_000))
    assert len(problems_of(SOUND + keys)) == 200


def test_hostile_names_do_not_make_the_search_for_the_nearest_long() -> None:
    roles = "\n".join(f"  {'r' * 9}{number}: {{}}" for number in range(20_000))
    moderator = "\n".join(f"- {{from: {'s' * 9}{n}, to: {'t' * 9}{n}}}" for n in range(5_000))
    assert len(problems_of(f"name: x\nroles:\n{roles}\nmoderator:\n{moderator}")) == 200
