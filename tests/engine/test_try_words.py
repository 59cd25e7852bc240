"""What a prompt says of a try."""

from typing import Any

from agentkit.conftest import MakeContext

from uwf_git.engine.prompt import build_prompt

TRY = {"number": 2, "of": 3, "node": "executor", "at": "0", "turn": "executor"}


def rejected(**fields: Any) -> dict[str, Any]:
    """Return the document of a try whose last one was rejected."""
    verdict = {"role": "verifier", "meta": {"ok": False}, "content": "It burns.", **fields}
    return {**TRY, "rejected": verdict}


def test_a_turn_without_a_try_says_nothing_of_one(context: MakeContext) -> None:
    assert "try" not in build_prompt(context()).partition("# How to answer")[0].split()
    assert build_prompt(context(**{"try": TRY})) == build_prompt(context())


def test_a_rejection_tells_issues_and_suggestion(context: MakeContext) -> None:
    told = rejected(issues=["no tests", "no words"], suggestion="Write </issues> both.")
    prompt = build_prompt(context(**{"try": told}))
    assert "This is try 2 of 3. verifier looked at the last one and rejected it." in prompt
    assert "<issues>\n- no tests\n- no words\n</issues>" in prompt
    assert "<suggestion>\nWrite </issues> both.\n</suggestion>" in prompt
    assert "It burns." not in prompt


def test_a_verdict_without_these_is_told_whole(context: MakeContext) -> None:
    prompt = build_prompt(context(**{"try": rejected()}))
    assert '<verdict>\n{"ok": false}\n\nIt burns.\n</verdict>' in prompt


def test_what_is_too_long_is_cut_with_a_note(context: MakeContext) -> None:
    prompt = build_prompt(context(**{"try": rejected(suggestion="word " * 10_000)}))
    assert len(prompt) < 20_000
    assert "characters left out; `uwf thread context" in prompt


def test_a_verifier_is_told_whose_work_it_judges(context: MakeContext) -> None:
    verifies = {"role": "executor", "input": {"plan": "000.md"}}
    told = {**TRY, "number": 4, "verifies": verifies}
    prompt = build_prompt(context(**{"try": told}))
    # One that was taken by hand, after all tries.
    assert "You judge the work of executor, which is the newest step above (try 4)." in prompt
    assert '<work>\n{"plan": "000.md"}\n</work>' in prompt
    assert "checks" not in prompt
    told["verifies"] = {**verifies, "checked": "$ lint\nno line is too long"}
    prompt = build_prompt(context(**{"try": told}))
    assert "printed:\n\n<checks>\n$ lint\nno line is too long\n</checks>" in prompt
