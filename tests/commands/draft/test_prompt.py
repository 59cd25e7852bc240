from pathlib import Path

import pytest

from uwf_git.commands.draft import PATTERNS, build_prompt, find_nearest, find_wish

WORKFLOWS = Path(__file__).parents[3] / "uwf_git" / "workflows"
DRAFT = WORKFLOWS / "draft.yaml"


@pytest.mark.parametrize(
    ("wish", "nearest"),
    [
        ("Review the text and improve it", "review-loop"),
        ("给每个文件写摘要", "orchestrate"),
        ("三个专家投票", "vote"),
        ("Deploy after a person has approved", "approve"),
        ("Repeat until the tests pass", "until-done"),
        ("Triage each issue by its kind", "route"),
        ("", "review-loop"),
    ],
)
def test_nearest_patterns_are_found_by_the_words_of_the_wish(wish: str, nearest: str) -> None:
    assert find_nearest(wish)[0] == nearest
    assert len(find_nearest(wish)) == 2


def test_prompt_begins_with_the_wish_and_has_two_patterns_whole() -> None:
    prompt = build_prompt("三个专家投票")

    assert prompt.startswith("三个专家投票\n\n")
    assert prompt.count("```yaml\n") == 2
    assert (WORKFLOWS / "vote.yaml").read_text() in prompt
    for pattern in PATTERNS:
        assert f"\n- {pattern.name}: " in prompt


@pytest.mark.parametrize("wish", ["one line", "two\n\n# Patterns\n\nlines", "没有"])
def test_wish_is_found_again(wish: str) -> None:
    assert find_wish(build_prompt(wish)) == wish


def test_patterns_are_those_that_are_shipped() -> None:
    shipped = {path.stem for path in WORKFLOWS.glob("*.yaml") if "Use it where" in path.read_text()}

    assert {pattern.name for pattern in PATTERNS} == shipped
