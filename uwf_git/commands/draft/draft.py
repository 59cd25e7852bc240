"""Draft a workflow: the task of the thread in which an agent writes it, and reading what came."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.draft.judge import Around, Judgement, describe, describe_problem, judge
from uwf_git.commands.inspect.step_view import get_text
from uwf_git.commands.lifecycle.start import Started, StartRequest, empty_prompt, start_thread
from uwf_git.commands.workflow.find import find_shipped_workflow, find_used, list_local
from uwf_git.errors import Refused
from uwf_git.model.builtin import STEP
from uwf_git.model.names import ThreadId
from uwf_git.model.workflow_name import fold_workflow_name
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import resolve_head
from uwf_git.store.threads.snapshot import read_snapshot
from uwf_git.store.workflows.registry import (
    SourceFiles,
    find_shipped,
    find_version,
    list_names,
    list_shipped,
    read_sources,
)

# The task of a drafting thread: the wish, the patterns in a line each, and the two nearest whole.
#
# The words of the drafter's role, with the reference of the language, are in
# workflows/draft.yaml.

_MARK = "\n\n# Patterns\n\n"
_WHOLE = 2
_WORD = re.compile(r"\w+")


class Pattern(NamedTuple):
    name: str
    words: tuple[str, ...]
    """Words of wishes that ask for it, or their beginnings, in lower case."""


PATTERNS = (
    Pattern("review-loop", ("review", "improve", "revise", "polite", "critic", "审", "评", "改")),
    Pattern("pipeline", ("then", "first", "finally", "after", "step", "然后", "先", "最后")),
    Pattern("approve", ("approv", "person", "human", "confirm", "批准", "确认", "人工", "同意")),
    Pattern("orchestrate", ("each", "every", "split", "parts", "per ", "每", "拆", "分解")),
    Pattern("fan-out", ("parallel", "at once", "same time", "sides", "并行", "同时", "多个")),
    Pattern("vote", ("vote", "majority", "agree", "decide", "投票", "表决", "多数")),
    Pattern("route", ("kind", "depending", "classif", "sort", "triage", "分类", "类型", "根据")),
    Pattern("until-done", ("until", "again", "repeat", "as long", "直到", "反复", "循环", "重复")),
)
"""The shipped patterns; of those that fit a wish alike the first is the nearest."""


def build_prompt(wish: str) -> str:
    lines, texts = [], []
    nearest = find_nearest(wish)
    for pattern in PATTERNS:
        text = _read(pattern.name)
        lines.append(f"- {text.partition(chr(10))[0].removeprefix('# ')}")
        if pattern.name in nearest:
            texts.append(f"```yaml\n{text}```")
    parts = ["\n".join(lines), "The nearest two, whole:", *texts]
    return f"{wish.strip()}{_MARK}" + "\n\n".join(parts) + "\n"


def find_wish(prompt: str) -> str:
    return prompt.rpartition(_MARK)[0] or prompt


def find_nearest(wish: str) -> Sequence[str]:
    """Return the names of the patterns that come nearest to *wish*."""
    folded = wish.casefold()
    words = set(_WORD.findall(folded))
    ranked = sorted(PATTERNS, key=lambda each: -_count(each, folded, words))
    return [each.name for each in ranked[:_WHOLE]]


def _count(pattern: Pattern, folded: str, words: set[str]) -> int:
    return sum(
        word in folded
        if not word.isascii() or " " in word
        else any(each.startswith(word) for each in words)
        for word in pattern.words
    )


def _read(name: str) -> str:
    file = find_shipped(name)
    return "" if file is None else Path(file.path).read_text(encoding="utf-8")


# Draft a workflow: start the thread in which an agent writes it, and read what came of it.
#
# The thread runs the shipped workflow `draft`, in which a validator judges each try. What it
# found good is judged again where it is read: only that decides.

WORKFLOW = "draft"
DRAFTER = "drafter"


class NoDraftThread(Refused):
    """The thread drafts no workflow, or has not begun to."""

    code = "no-draft-thread"

    def __init__(self, thread: str, problem: str) -> None:
        super().__init__(
            f"thread {thread} {problem}",
            hint="`uwf thread list --all --workflow draft` lists the threads that draft workflows",
            thread=thread,
        )


def draft_stopped(thread: str, status: str) -> Refused:
    """Return the error for a drafting that stopped before its end."""
    return Refused(
        f"the drafting has stopped: thread {thread} is {status}",
        code="draft-stopped",
        hint=f"`uwf workflow draft --thread {thread}` goes on",
        thread=thread,
    )


class DraftRequest(NamedTuple):
    wish: str
    agent: str | None = None
    """The command or the settings of the agent; None: the default one."""

    default_agent: str | None = None

    needs_agent: bool = True
    """Refuse to begin without an agent whose program is found here."""


class Draft(NamedTuple):
    thread: ThreadId
    wish: str
    why: str
    """Why it is as it is, in the agent's words."""

    questions: tuple[str, ...]
    """What the agent has to know first; then there is no file."""

    judgement: Judgement


def start_draft(
    store: Store, caller: Caller, request: DraftRequest, *, thread: ThreadId
) -> Started:
    """Start the thread that drafts a workflow; nothing runs."""
    if not request.wish.strip():
        raise empty_prompt()
    agents = () if request.agent is None else (f"{DRAFTER}={request.agent}",)
    start = StartRequest(
        WORKFLOW,
        build_prompt(request.wish),
        agents,
        request.default_agent,
        needs_agents=request.needs_agent,
        found=find_shipped_workflow(store, WORKFLOW),
    )
    return start_thread(store, caller, start, thread=thread)


def read_draft(store: Store, cwd: str, text: str) -> Draft:
    head = resolve_head(store, text)
    snapshot = read_snapshot(store, head.commit)
    if snapshot.record.workflow_name != WORKFLOW:
        name = snapshot.record.workflow_name
        raise NoDraftThread(head.thread, f"runs {name}, and drafts no workflow")
    wish = find_wish(str(snapshot.get_start().payload["prompt"]))
    for node in snapshot.walk_chain():
        if node.type == STEP and node.payload["role"] == DRAFTER:
            meta = node.payload["meta"]
            found = judge(
                get_text(snapshot, node.payload.get("content")),
                look_around(store, cwd),
                prompt=wish,
            )
            questions = tuple(map(str, meta.get("questions") or ()))
            return Draft(head.thread, wish, str(meta.get("why") or ""), questions, found)
    raise NoDraftThread(head.thread, "has no draft yet")


def answer_as_validator(store: Store, cwd: str, thread: str) -> tuple[dict[str, Any], str]:
    judgement = read_draft(store, cwd, thread).judgement
    problems = [describe_problem(each) for each in judgement.problems]
    told = describe(judgement) if problems else f"It ends: {' → '.join(judgement.roles)}."
    return {"valid": not problems, "problems": problems}, told


def look_around(store: Store, cwd: str) -> Around:
    local = [file.name for file in list_local(cwd)]
    shipped = [file.name for file in list_shipped()]
    taken = {fold_workflow_name(name) for name in (*local, *list_names(store), *shipped)}

    def is_taken(name: str, source: str) -> bool:
        return fold_workflow_name(name) in taken and not _is_put(store, name, source)

    return Around(find_used(store, cwd), is_taken)


def _is_put(store: Store, name: str, source: str) -> bool:
    """Check whether the newest version of the workflow *name* is *source*."""
    version = find_version(store, name)
    if version is None or version.is_removed:
        return False
    return read_sources(store.objects, version.commit) == SourceFiles(source.encode(), {})
