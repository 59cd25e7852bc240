import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from model.telling import tell_cases

from uwf_git.engine.events import LoopPass, Node, TransitionFacts, TurnStarted, build_events
from uwf_git.engine.markdown import (
    ThreadEntry,
    fence_text,
    inline_text,
    lower_headings,
    place_text,
    render_document,
)
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.thread import Event, Status, TransitionRecord

MARKDOWN = Path(__file__).parent / "made_up" / "markdown.json"
BASE, COMMIT = "b" * 40, "c" * 40


def record(event: Event = "step", status: Status = "ready") -> TransitionRecord:
    return TransitionRecord(
        thread=ThreadId("01J00000000000000000000001"),
        event=event,
        status=status,
        node=NodeHash("ENXTKXNTS0831"),
        depth=1,
        workflow=NodeHash("31PY5YAKWQ9YD"),
        workflow_name="demo",
    )


WRITER = Node("writer", "writer", 2)
TURN = TurnStarted(BASE, record("start"), "writer", "uwf-mock", 1000, WRITER, attempt=1)


def told(event: Event, status: Status = "ready", **more: Any) -> list[dict[str, Any]]:
    facts = TransitionFacts(COMMIT, record(event, status), 3000, f"{event}: said", **more)
    return list(build_events(facts))


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


@pytest.mark.parametrize(
    ("event", "more", "expected"),
    [
        ("start", {}, ["workflow:start"]),
        ("start", {"is_branch": True}, ["workflow:progress"]),
        ("kill", {"is_branch": True}, ["workflow:progress"]),
        ("fork", {}, ["workflow:start"]),
        ("step", {"turn": TURN}, ["node:enter", "node:exit", "workflow:progress"]),
        ("answer", {"turn": TURN, "is_new_turn": False}, ["node:exit", "workflow:progress"]),
        ("attempt", {"turn": TURN}, ["node:enter", "node:exit", "workflow:progress"]),
        (
            "attempt",
            {"turn": TURN, "has_failed": True},
            ["node:enter", "node:exit", "workflow:error"],
        ),
        ("wait", {"turn": TURN}, ["node:enter", "workflow:progress"]),
        ("pause", {}, ["workflow:progress"]),
        ("end", {}, ["workflow:complete"]),
        ("kill", {}, ["workflow:error"]),
    ],
)
def test_each_transition_has_its_events(
    event: Event, more: dict[str, Any], expected: list[str]
) -> None:
    assert types(told(event, **more)) == expected


def test_event_is_reported_whole() -> None:
    assert told("step", turn=TURN, state={"n": 1})[1] == {
        "id": f"{COMMIT}-exit",
        "type": "node:exit",
        "taskId": "01J00000000000000000000001",
        "timestamp": 3000,
        "payload": {
            "nodeId": "writer",
            "nodeName": "writer",
            "iteration": 2,
            "durationMs": 2000,
            "state": {"n": 1},
        },
        "event": "step",
        "status": "ready",
        "role": None,
        "agent": None,
        "attempt": 1,
        "depth": 1,
        "node": "ENXTKXNTS0831",
        "workflow": "31PY5YAKWQ9YD",
        "workflowName": "demo",
        "forkedFrom": None,
        "parentThread": None,
        "commit": COMMIT,
        "subject": "step: said",
        "reason": None,
    }


LOOP = LoopPass(Node("review", "Until it is good", 3), 1)


def test_branches_that_run_at_once_begin_and_end_together() -> None:
    branches = [{"taskId": "x", "nodeId": "a"}]
    node = Node("checks", "checks", 1)

    begun = told("split", "split", where=node, passes=(LOOP,), branches=branches)
    joined = told("join", where=node, branches=branches)

    assert types(begun) == ["loop:iteration", "parallel:start", "workflow:progress"]
    assert types(joined) == ["parallel:complete", "workflow:progress"]
    assert begun[1]["payload"]["branches"] == branches
    assert [event["id"].partition("-")[2] for event in begun] == ["loop1", "parallel", "progress"]


# Threads as Markdown: readable, and no text of an agent leaves its place.

# Texts that have broken some renderer; their combinations matter as much.
HOSTILE = [
    "# h", "## 9. forged", "   # h", "#", "====", "---", "-", "- a", "    deep", "", "   ",
    "```", "  ```", "\t```", "    ```", "~~~", "````", "``` `x", "```py", "- ```", "> ```", "> # h",
    "<div>", "<!--", "<?php", "<![CDATA[", "</p", "`<b>`", "` <script>", "\\`<b>`", "\\<div>",
    "[a]: http://x", "> [b]: y", "text", "\r# cr", "\r```", "foo\r===", "<div\nid=x>", "x < y",
    "&lt;", "<https://x.y>", "\x0b# vt", "\u2028# ls",
]  # fmt: skip

texts = st.lists(st.sampled_from(HOSTILE), max_size=8).map("\n".join)


def document(*entries: ThreadEntry, task: str = "Do it.", title: str = "Title") -> str:
    return "".join(render_document(title, ("a", "", "b"), task, entries))


def outside_of_code(text: str) -> tuple[list[str], bool]:
    """Return the lines that a Markdown reader sees as prose, and whether a fence stays open."""
    lines, fence = [], ""
    for line in re.split(r"\r\n|\r|\n", text):
        if fence:
            if re.fullmatch(rf" {{0,3}}{fence}{fence[0]}*[ \t]*", line):
                fence = ""
            continue
        opening = re.match(r"(`{3,})[^`]*$|(~{3,})", line)
        fence = (opening[1] or opening[2]) if opening else ""
        if not fence:
            lines.append(line)
    return lines, bool(fence)


@given(texts)
def test_text_stays_in_its_place(text: str) -> None:
    lines, is_open = outside_of_code(place_text(text))

    assert not is_open
    for line, before in zip(lines, ["", *lines], strict=False):
        assert not re.match(r" {0,3}#{1,2}([ \t]|$)", line)
        assert not (re.match(r" {0,3}(=+|-+)[ \t]*$", line) and before.strip())
        assert not re.match(r"\s+(```|~~~)", line)
        assert not re.search(r"<(div|!--|\?|!\[|script|/p)", line)
        assert not re.match(r"[> ]*\[\w\]:", line)


@given(texts)
def test_document_has_the_headings_that_we_gave_it_and_no_others(text: str) -> None:
    entries = [
        ThreadEntry("1. a", ("f",), {"k": text, "l": [text], text: 1}, text),
        ThreadEntry("2. b"),
    ]

    lines, is_open = outside_of_code(document(*entries, task=text))

    assert [line for line in lines if re.match(r" {0,3}#{1,2}([ \t]|$)", line)] == [
        "# Title",
        "## 1. a",
        "## 2. b",
    ]
    assert not is_open


@given(texts)
def test_prose_is_placed_only_once(text: str) -> None:
    fenced = fence_text(text)

    assert place_text(fenced) == fenced


def test_thread_reads_well() -> None:
    entry = ThreadEntry(
        "1. planner: a plan",
        ("uwf-x", "2 s"),
        {"plan": ["read", "fix"], "risk": "low", "open": [], "why": "one\ntwo"}
        | {"n": 3, "d": {"a": 1}},
        "# Plan\n\n1. read\n2. fix\n\n```sh\n# a comment\nmake\n```\n",
    )

    assert document(entry, task="First.\n\nSecond.") == (
        "# Title\n\na · b\n\n> First.\n>\n> Second.\n\n## 1. planner: a plan\n\nuwf-x · 2 s\n\n"
        "- **plan**:\n  - read\n  - fix\n- **risk**: low\n- **open**: none\n"
        '- **why**:\n  > one\n  > two\n- **n**: 3\n- **d**: `{"a": 1}`\n\n'
        "### Plan\n\n1. read\n2. fix\n\n```sh\n# a comment\nmake\n```\n"
    )


MARKS = [
    "*", "**", "_", "__", "~~", "`", "``", "[", "]", "(", ")", "!", "\\", "<", ">", "&", "lt;", "#",
    " ", "a", "b1", "日", ".", ":", "@", "/",
]  # fmt: skip


@given(st.lists(st.sampled_from(MARKS), max_size=12).map("".join))
def test_data_is_read_as_it_is_recorded(text: str) -> None:
    parser = MarkdownIt("commonmark").enable("strikethrough")

    shown = parser.render(f"# {inline_text(text)}")

    inside = re.sub(r"</?(?:h1|code)>", "", shown)
    assert html.unescape(inside).strip() == " ".join(text.split())


def test_large_hostile_text_costs_no_more_than_reading_it() -> None:
    # Runs of marks of different lengths: searching for the end of each would take minutes.
    text = " ".join("`" * n for n in range(1, 1500)) + " <b>"

    assert place_text(text).startswith("`" * 1500)


def test_objects_in_meta_are_lists_for_who_reads_them_rendered() -> None:
    meta = {"findings": [{"file": "a.py", "deep": [1]}, {"file": "<b>"}], "of": {"x": 1}, "y": [{}]}

    def written(*, has_lists: bool) -> str:
        entry = ThreadEntry("t", meta=meta)
        return "".join(render_document("t", (), "", [entry], has_lists=has_lists))

    assert written(has_lists=True).partition("## t\n\n")[2] == (
        "- **findings**:\n"
        "  - **file** a.py · **deep** `[1]`\n"
        "  - **file** `<b>`\n"
        "- **of**:\n"
        "  - **x**: 1\n"
        "- **y**: `[{}]`\n"
    )
    assert '- **findings**: `[{"file": "a.py"' in written(has_lists=False)


def test_texts_of_threads_as_markdown(golden: Callable[[str, str], None]) -> None:
    answers = {
        "meta": lambda meta: document(ThreadEntry("e", meta=meta)).partition("## e\n\n")[2],
        "inline_text": inline_text,
        "lower_headings": lower_headings,
        "place_text": place_text,
    }
    golden("engine/markdown.txt", tell_cases(MARKDOWN, answers))
