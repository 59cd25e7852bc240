"""The reference in `workflows/draft.yaml`, from which a model learns the language, is true."""

import re
from pathlib import Path

import pytest
from workflow_file import read_flow_file

from uwf_git.engine.expression import check_condition
from uwf_git.engine.javascript.parser import METHODS, PRECEDENCE
from uwf_git.engine.rehearsal import NAMES, check_flow_text
from uwf_git.model.definition.definition import FlowText
from uwf_git.model.definition.flow_fields import CHOICES, KEYS, POLICIES
from uwf_git.model.definition.roles import ROLE_KEYS
from uwf_git.model.definition.source import FLOW_KEYS, GRAPH_KEYS, SETTINGS
from uwf_git.model.flow import DEFAULT_BOUND

DRAFT = Path(__file__).parents[3] / "uwf_git" / "workflows" / "draft.yaml"
WORDS = read_flow_file(DRAFT.read_text(encoding="utf-8")).roles["drafter"].system_prompt or ""
SECTIONS = dict(re.findall(r"^### (.*)\n((?:(?!### ).*\n?)*)", WORDS, re.MULTILINE))
NODES, JAVASCRIPT = SECTIONS["Containers and agents"], "Expressions of containers: JavaScript"
KINDS, HELD = NODES.split("What the keys hold:")
EXPRESSIONS, TEMPLATES = SECTIONS[JAVASCRIPT].split("Templates are")
OF_ALL = [key for key in KEYS["agent"] if all(key in keys for keys in KEYS.values())]


def listed(text: str) -> dict[str, str]:
    """Return the words of each key that a list explains."""
    return dict(re.findall(r"^- `([^`]+)`: (.*)$", text, re.MULTILINE))


def examples(text: str) -> list[tuple[str, str]]:
    """Return what the text calls wrong, and what right in its place."""
    found: list[tuple[str, str]] = re.findall(r"^- not `(.*)` but `(.*)`$", text, re.MULTILINE)
    assert found
    return found


def quoted(text: str, before: str) -> list[str]:
    """Return what stands in backticks in the sentence that begins with *before*."""
    match = re.search(re.escape(before) + r"(.*?)\.$", text, re.MULTILINE)
    assert match is not None
    return re.findall(r"`([^`]+)`", match[1])


def test_every_key_of_the_validator_is_explained_and_no_other() -> None:
    # Whoever writes a draft must not learn how to name a command.
    assert set(listed(SECTIONS["The file"])) == {*FLOW_KEYS, *GRAPH_KEYS} - {"defaultAgent"}
    assert set(listed(SECTIONS["A role"])) == {*ROLE_KEYS} - {"checks", "name", "schema"}
    assert set(listed(HELD)) == {key for keys in KEYS.values() for key in keys}
    assert "defaultAgent" not in WORDS.partition("## The language")[2]
    assert "`checks`" not in WORDS


def test_each_container_has_its_keys() -> None:
    told = {kind: words.rpartition(": ")[2].split(", ") for kind, words in listed(KINDS).items()}

    assert {kind: set(keys) for kind, keys in told.items()} == {
        kind: {key for key in keys if key not in OF_ALL} for kind, keys in KEYS.items()
    }
    assert ["type", *quoted(KINDS, "all may have ")] == OF_ALL


def test_each_choice_is_named() -> None:
    words = listed(HELD)

    for key, choices in CHOICES.items():
        assert words[key].endswith(": " + " or ".join(choices)), key
    assert all(policy in words["merge"] for policy in POLICIES)
    assert f"{DEFAULT_BOUND} unless set" in words["maxIterations"]
    assert quoted(SECTIONS["The file"], "`config` may have ") == [*SETTINGS]


def test_what_expressions_may_say_is_what_the_parser_takes() -> None:
    assert quoted(EXPRESSIONS, "Names: ")[: len(NAMES)] == [*NAMES]
    operators = [*PRECEDENCE, "&&", "||", "??", "? :", "!", "?."]
    assert quoted(EXPRESSIONS, "Operators: ") == operators
    assert quoted(EXPRESSIONS, "Methods: ") == [*METHODS]


@pytest.mark.parametrize(("wrong", "right"), examples(EXPRESSIONS))
def test_expressions_are_as_right_and_wrong_as_they_claim(wrong: str, right: str) -> None:
    assert check_flow_text(FlowText("expression", wrong, "javascript")) is not None
    assert check_flow_text(FlowText("expression", right, "javascript")) is None


@pytest.mark.parametrize(("wrong", "right"), examples(TEMPLATES))
def test_templates_are_as_right_and_wrong_as_they_claim(wrong: str, right: str) -> None:
    assert check_flow_text(FlowText("template", wrong, "javascript")) is not None
    assert check_flow_text(FlowText("template", right, "javascript")) is None


@pytest.mark.parametrize(("wrong", "right"), examples(SECTIONS["A graph"]))
def test_conditions_are_as_right_and_wrong_as_they_claim(wrong: str, right: str) -> None:
    assert check_condition(wrong) is not None
    assert check_condition(right) is None
