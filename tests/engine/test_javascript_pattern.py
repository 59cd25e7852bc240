from collections.abc import Callable
from pathlib import Path

from model.telling import tell_cases

from uwf_git.engine.jsonata_functions import JavaScriptPattern

PATTERNS = Path(__file__).parent / "made_up" / "patterns.json"


def is_found(pattern: str, text: str, flags: str) -> bool:
    compiled = JavaScriptPattern(pattern, ignore_case="i" in flags, by_line="m" in flags)
    return compiled.search(text) is not None


def test_patterns_are_found_as_in_javascript(golden: Callable[[str, str], None]) -> None:
    """The answers are those of node 20."""
    answers = dict.fromkeys(("found", "not found", "refused"), is_found)
    golden("engine/patterns.txt", tell_cases(PATTERNS, answers))
