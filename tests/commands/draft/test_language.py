import pytest

from uwf_git.commands.draft.language import (
    CONDITIONS,
    EXPRESSIONS,
    KINDS,
    NODE,
    ROLE,
    TEMPLATES,
    TOP,
    Example,
    describe_language,
)
from uwf_git.engine.expression import check_condition
from uwf_git.engine.flow_text import check_flow_text
from uwf_git.model.definition.flow_fields import CHOICES, KEYS, POLICIES
from uwf_git.model.definition.roles import role_keys
from uwf_git.model.definition.source import FLOW_KEYS, GRAPH_KEYS
from uwf_git.model.definition.surroundings import FlowText


def test_every_key_of_the_validator_has_words_and_no_other() -> None:
    assert set(TOP) | {"defaultAgent"} == {*FLOW_KEYS, *GRAPH_KEYS}
    assert set(ROLE) | {"checks", "name", "schema"} == set(role_keys())
    assert set(NODE) == {key for keys in KEYS.values() for key in keys}
    assert set(KINDS) == set(KEYS)


def test_reference_names_every_key_and_choice() -> None:
    text = describe_language()

    for key in [*TOP, *ROLE, *KEYS]:
        assert f"- `{key}`: " in text, key
    for choices in [*CHOICES.values(), POLICIES]:
        assert all(choice in text for choice in choices)
    # Whoever writes a draft must not learn how to name a command.
    assert "defaultAgent" not in text
    assert "`checks`" not in text


@pytest.mark.parametrize("example", EXPRESSIONS, ids=lambda each: each.wrong)
def test_expressions_are_as_right_and_wrong_as_they_claim(example: Example) -> None:
    wrong, right = (FlowText("expression", each, "javascript") for each in example)

    assert check_flow_text(wrong) is not None
    assert check_flow_text(right) is None


@pytest.mark.parametrize("example", TEMPLATES, ids=lambda each: each.wrong)
def test_templates_are_as_right_and_wrong_as_they_claim(example: Example) -> None:
    wrong, right = (FlowText("template", each, "javascript") for each in example)

    assert check_flow_text(wrong) is not None
    assert check_flow_text(right) is None


@pytest.mark.parametrize("example", CONDITIONS, ids=lambda each: each.wrong)
def test_conditions_are_as_right_and_wrong_as_they_claim(example: Example) -> None:
    assert check_condition(example.wrong) is not None
    assert check_condition(example.right) is None
