import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workflow_file import read_flow_file

from uwf_git.agents.limited_fork import RunLimits
from uwf_git.commands.draft import Around, Judgement, describe, describe_problem, find_source, judge
from uwf_git.engine.expression import check_condition
from uwf_git.engine.javascript.parser import METHODS, PRECEDENCE
from uwf_git.engine.rehearsal import check_flow_text
from uwf_git.model.definition.definition import FLOW_NAMES, FlowText
from uwf_git.model.definition.flow_fields import CHOICES, KEYS, POLICIES
from uwf_git.model.definition.roles import ROLE_KEYS
from uwf_git.model.definition.source import FLOW_KEYS, GRAPH_KEYS, SETTINGS
from uwf_git.model.flow import DEFAULT_BOUND

WORKFLOWS = sorted((Path(__file__).parents[3] / "workflows").glob("*.yaml"))
PATTERNS = [path for path in WORKFLOWS if "Use it where" in path.read_text()]

GOOD = """\
name: letter
description: Write a letter, and have it checked
roles:
  writer: {systemPrompt: Write the letter., outputSchema: true}
  checker:
    systemPrompt: Is it polite?
    outputSchema: {type: object, required: [polite], properties: {polite: {type: boolean}}}
root:
  type: loop
  maxIterations: 3
  condition: state.polite === false
  nodes:
    - {type: agent, agentId: writer}
    - {type: agent, agentId: checker}
"""

AROUND = Around(lambda name: f"there is no workflow {name}", lambda name, _: name == "taken")


def judged(text: str) -> Judgement:
    return judge(text, AROUND, prompt="A letter to Ada")


def told(text: str) -> list[tuple[int | None, str]]:
    return [(each.line, each.message) for each in judged(text).problems]


def spoiled(old: str, new: str) -> str:
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


@pytest.mark.parametrize("path", PATTERNS, ids=lambda path: path.stem)
def test_patterns_would_be_good_drafts(path: Path) -> None:
    assert judged(path.read_text()).problems == ()


DRAFTS: dict[str, Any] = json.loads((Path(__file__).parent / "made_up/drafts.json").read_text())
"""Whole drafts, or what they have in place of a text of the good one."""


def drafted(case: str) -> str:
    text = DRAFTS[case] if isinstance(DRAFTS[case], str) else GOOD
    for old, new in DRAFTS[case].items() if text is GOOD else ():
        assert old in text
        text = text.replace(old, new)
    return str(text)


def test_draft_is_told_its_problems_with_their_lines(golden: Callable[[str, str], None]) -> None:
    told = []
    for case in DRAFTS:
        found = judged(drafted(case))
        told += [f"# {case}\n\n", *(f"- {describe_problem(each)}\n" for each in found.problems)]
        told += [f"name {found.name!r}, {len(found.roles)} turns: {[*found.roles[:9]]}\n\n"]

    shown = ("an agent without a role, on a long line", "checks of a verifier")
    golden("drafts.txt", "".join([*told, *(describe(judged(drafted(each))) for each in shown)]))


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("```\na: 1\n```", "a: 1\n"),
        ("~~~ yaml\na: 1\n```\n~~~\n", "a: 1\n```\n"),
        ("````\na: |\n  ```\n  x\n  ```\n````\n", "a: |\n  ```\n  x\n  ```\n"),
        ("```yaml\r\na: 1\r\n```\r\n", "a: 1\r\n"),
        ("```\na: 1\n```\nor\n```\nb: 1\n```\n", None),
        ("```\na: 1\n", None),
        ("a: 1\n", None),
        ("a: |\n    ```\n    x\n    ```\n", None),
    ],
)
def test_source_is_the_one_block_else_all(text: str, source: str | None) -> None:
    assert find_source(text) == (text if source is None else source)


def test_nothing_of_the_disk_is_included() -> None:
    Path("secret").write_text("the secret")

    problems = told(spoiled("Write the letter.", f"!include {os.path.abspath('secret')}"))

    assert problems
    assert "the secret" not in str(problems)


def test_condition_that_takes_for_ever_is_a_problem() -> None:
    slow = "$count([1..9999999].($ * 2)) > 1"
    graph = f"""\
name: slow
roles: {{writer: {{systemPrompt: Write.}}}}
moderator:
  - {{from: $START, to: writer}}
  - {{from: writer, to: writer, condition: '{slow}'}}
  - {{from: writer, to: $END}}
"""

    found = judge(graph, AROUND, prompt="x", limits=RunLimits(cpu_s=1, wall_s=2.0))

    assert [each.message for each in found.problems] == [
        "the rehearsal took too much time and was stopped"
    ]


HOSTILE_PARTS = [
    *("- nodes", "&a [*a]", "!include x", "{", "\x00", "\ud800", "state", "null", "🙂", "\t", ": "),
    *("outputSchema: {$ref: '#'}", "roles:", "'", "checks:", "1e999", "condition: state.x.y.z"),
]


@given(st.sampled_from(PATTERNS), st.data())
def test_whatever_is_said_is_judged(path: Path, data: st.DataObject) -> None:
    lines = path.read_text().splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(lines) - 1))
        change = data.draw(st.sampled_from(["drop", "twice", "spoil", "indent"]))
        line = lines[place]
        middle = data.draw(st.integers(0, len(line)))
        lines[place] = {
            "drop": "",
            "twice": line * 2,
            "spoil": line[:middle] + data.draw(st.sampled_from(HOSTILE_PARTS)) + line[middle:],
            "indent": f"  {line}",
        }[change]

    found = judge("".join(lines), AROUND, prompt="x", limits=RunLimits(cpu_s=2, wall_s=4.0))

    assert bool(found.name) is not bool(found.problems)
    assert describe(found)


# The reference in `workflows/draft.yaml`, from which a model learns the language, is true.

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
    assert quoted(EXPRESSIONS, "Names: ")[: len(FLOW_NAMES)] == [*FLOW_NAMES]
    assert quoted(EXPRESSIONS, "Operators: ") == [*PRECEDENCE, "&&", "||", "??", "? :", "!", "?."]
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
