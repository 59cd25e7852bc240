"""What a prompt says of a try: why the last one was rejected, and what a verifier judges."""

from collections.abc import Callable

from uwf_git.engine.turn_context import AgentContext
from uwf_git.engine.turn_views import Rejection, TryView

_LONGEST = 8_000

Mark = Callable[[str, str], str]
"""Puts a text between tags: the name of the tag, and the text."""

Cut = Callable[[str, int], str]
"""Shortens a text to so many characters."""


def build_try(
    context: AgentContext, mark: Mark, cut: Cut, as_text: Callable[[object], str]
) -> list[str]:
    """Return the parts of the prompt about the try that the turn belongs to; none without one."""
    tried = context.tried
    if tried is None:
        return []
    if tried.verifies is not None:
        return _build_verdict(tried, tried.verifies, mark, cut, as_text(tried.work_input or ""))
    if tried.rejected is not None:
        return _build_rejection(tried, tried.rejected, mark, cut, as_text)
    return []


def _build_verdict(tried: TryView, worker: str, mark: Mark, cut: Cut, work: str) -> list[str]:
    what = f"You judge the work of {worker}, which is the newest step above ({_count(tried)})."
    how = "Judge what is really there, not what the report says of it. Do not do the work yourself."
    parts = ["# What you verify", f"{what} {how}"]
    if work:
        parts += ["This is what the work was about:", mark("work", cut(work, _LONGEST))]
    if tried.checked:
        parts += [
            "It passed its checks, which printed:",
            mark("checks", cut(tried.checked, _LONGEST)),
        ]
    return parts


def _build_rejection(
    tried: TryView, rejected: Rejection, mark: Mark, cut: Cut, as_text: Callable[[object], str]
) -> list[str]:
    who = f"This is {_count(tried)}. {rejected.role} looked at the last one and rejected it."
    what = "What you did is still there: put right what is wrong with it."
    parts = ["# Your work was rejected", f"{who} {what}"]
    if rejected.issues:
        issues = "\n".join(f"- {each}" for each in rejected.issues)
        parts += ["What is wrong:", mark("issues", cut(issues, _LONGEST))]
    if rejected.suggestion:
        parts += ["What to do about it:", mark("suggestion", cut(rejected.suggestion, _LONGEST))]
    if not rejected.issues and not rejected.suggestion:
        said = "\n\n".join(filter(None, (as_text(rejected.meta), rejected.content)))
        parts += ["This is the verdict:", mark("verdict", cut(said, _LONGEST))]
    return parts


def _count(tried: TryView) -> str:
    if tried.of is None or tried.number > tried.of:
        return f"try {tried.number}"
    return f"try {tried.number} of {tried.of}"
