"""A thread as one document: how it stands, all that happened, what it cost, what is damaged.

Plain values, keys masked: the report and the page are made of it. It has nothing of the machine but
the thread's present, so the same store gives the same document.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.commands.inspect.excerpt import CONTENT_BYTES, Mask, cut_text, make_mask, mask_json
from uwf_git.commands.inspect.graph import picture_thread
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.inspect.story import StoryReader, Telling, add_up, find_problems
from uwf_git.commands.verify.signatures import SignatureReader
from uwf_git.engine.picture.plan import Subject
from uwf_git.errors import StoreDamaged, UwfError
from uwf_git.model.event_words import first_line
from uwf_git.model.limits import render_limit
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, resolve_head

_SHOWN = (
    "workflow", "workflowName", "status", "depth", "parentThread", "branchOf",
    "startTime", "lastUpdateTime", "endTime", "error", "attempts", "agents", "agentSettings",
    "state", "said", "next", "waiting", "question", "reason", "by", "hint", "heldBy", "diverged",
)  # fmt: skip
_ASKED = ("role", "description", "systemPrompt", "fields")


class ThreadReport(NamedTuple):
    document: dict[str, Any]
    picture: Subject | None
    """None: the thread or its workflow cannot be read."""


def report_of_damage(thread: str, problems: list[str]) -> StoreDamaged:
    """Return the error after a report was made of a thread that cannot be read whole."""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return StoreDamaged(
        f"the report of thread {thread} is not whole: {problems[0]}{more}",
        code="report-of-damage",
        hint=f"`uwf verify {thread}` checks all of it",
        thread=thread,
        problems=problems,
    )


def view_report(store: Store, text: str, environ: Mapping[str, str]) -> ThreadReport:
    """Return the report of the thread *text*, masked; ``problems`` has what cannot be read."""
    head = resolve_head(store, text)
    mask = make_mask(environ)
    problems: list[str] = []
    present: dict[str, Any] = {}
    picture = None
    try:
        present = view_present(store, head.thread, mask)
        picture = picture_thread(store, head.thread)
    except UwfError as error:
        problems.append(mask(error.message))
    signatures = SignatureReader(store, environ)
    reader = StoryReader(store, Telling(mask, signatures=signatures))
    entries = reader.read(head.thread, head.commit, through_forks=True)
    problems += find_problems(entries)
    document = {
        "thread": head.thread,
        "ref": f"{ARCHIVE if head.archived else ACTIVE}{head.thread}",
        "commit": head.commit,
        **present,
        "totals": add_up(entries),
        "entries": entries,
        "signatureProblem": None if signatures.problem is None else mask(signatures.problem),
        "problems": list(dict.fromkeys(problems)),
    }
    return ThreadReport(document, picture)


def view_present(store: Store, thread: ThreadId, mask: Mask) -> dict[str, Any]:
    """Return how *thread* stands; it raises what ``show_thread`` raises."""
    shown = show_thread(store, thread)
    present = {name: mask_json(shown[name], mask) for name in _SHOWN if name in shown}
    commit = shown["commit"]
    text = str(shown["prompt"])
    present["title"] = mask(first_line(text))
    present["prompt"] = cut_text(text, mask, f"git show {commit}:start.json", most=CONTENT_BYTES)
    state = json.dumps(present["state"], ensure_ascii=False, indent=2)
    cut = cut_text(state, mask, f"git show {commit}:now.json", most=CONTENT_BYTES)
    present["state"] = cut if cut["isCut"] else {"value": present["state"]}
    asked = present.pop("question", None)
    if isinstance(asked, dict):
        present["question"] = {name: asked[name] for name in _ASKED if name in asked}
    limits = shown["limits"].items()
    return {**present, "limits": {name: render_limit(name, limit) for name, limit in limits}}
