"""Tell what an adapter answers, for golden files."""

import json
from collections.abc import Callable, Iterator

from agentkit.traces import find_odd

from uwf_git.agentkit.turn import AdapterAnswer, AskFailed
from uwf_git.errors import BadUsage


def tell_answer(ask: Callable[[], AdapterAnswer]) -> Iterator[str]:
    """Tell the answer of *ask*, or why there is none and what there is of one."""
    try:
        answer: AdapterAnswer | None = ask()
    except BadUsage as refused:
        yield f"    refused: {refused.message}\n"
        return
    except AskFailed as failure:
        yield f"    {failure.kind}: {failure.message}\n"
        yield from (f"    hint: {hint}\n" for hint in [failure.hint] if hint)
        facts = {name: fact for name, fact in failure.facts.items() if name != "kind"}
        yield from (f"    {name}: {fact}\n" for name, fact in facts.items())
        answer = failure.partial
    if answer is None:
        return
    assert find_odd(answer.trace) == []
    for name in ("text", "structured", "session", "usage"):
        if getattr(answer, name):
            yield f"    {name}: {json.dumps(getattr(answer, name), ensure_ascii=False)}\n"
    yield from (f"    - {json.dumps(event, ensure_ascii=False)}\n" for event in answer.trace)
