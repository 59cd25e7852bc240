from pathlib import Path
from typing import Any

import pytest
from cli.program import Uwf

AGENT = """\
said=$(cat says)
content="first\\\\n$said\\\\nlast\\\\n"
printf '{"meta": {"text": "%s", "ok": false}, "content": "%s"}' "$said" "$content"
"""


@pytest.fixture
def both(uwf: Uwf) -> tuple[str, str]:
    """Return a thread of three steps and a fork at its first with a different second step."""

    def step(thread: str, says: str) -> None:
        (uwf.place / "says").write_text(says)
        uwf.json("thread", "step", thread)

    thread = uwf.begun(uwf.agent(AGENT))
    for says in ("one", "two", "three"):
        step(thread, says)
    forked = str(uwf.json("thread", "fork", thread, "--at", "1")["thread"])
    step(forked, "2")
    return thread, forked


def test_long_diffs_are_cut_short_as_text_only(uwf: Uwf, both: tuple[str, str]) -> None:
    (uwf.place / "says").write_text("x" * 500)
    uwf.json("thread", "step", both[1])
    uwf.agent("cat >/dev/null; seq 100 | tr '\\n' '/' | sed 's|/|\\\\n|g;"
              's|.*|{"meta": {"ok": false}, "content": "&"}|\'')  # fmt: skip
    uwf.json("thread", "step", both[1])

    told = uwf("thread", "diff", *both, "--format", "text").out
    document: Any = uwf.json("thread", "diff", *both)

    assert max(map(len, told.splitlines())) < 230
    assert "   … 60 more lines (--format json has all)\n" in told
    assert "\n   +40\n" in told
    assert document["steps"][-1]["b"]["content"].endswith("\n99\n100\n")
    assert "x" * 500 in document["steps"][1]["content"]


def test_controls_of_a_terminal_are_spelled_out(uwf: Uwf, both: tuple[str, str]) -> None:
    uwf.agent("""printf '%s' '{"meta": {"text": "\\u001b[0m"}, "content": "\\u001b[31m"}'""")
    uwf.json("thread", "step", both[1])

    told = uwf("thread", "diff", *both, "--format", "text").out

    assert "\x1b" not in told
    assert "+\\x1b[31m" in told


def test_strangers_and_twins_are_distinguished(uwf: Uwf) -> None:
    threads = [uwf.begun(), uwf.begun()]
    uwf.json("thread", "start", "demo", "-p", "Else.", "--agent", uwf.agent())
    stranger = uwf.json("thread", "list", "--limit", "1")[0]["thread"]

    twins = uwf("thread", "diff", *threads, "--format", "text").out
    strangers = uwf("thread", "diff", threads[0], stranger, "--format", "text").out

    assert "\nalike up to their start, but not one history; no step differs\n" in twins
    assert "\nthey share no step, and are compared from their starts\n" in strangers
    assert "\nprompt\n   @@ -1 +1 @@\n   -Do it.\n" in strangers


def test_damaged_thread_is_reported(uwf: Uwf, both: tuple[str, str]) -> None:
    Path(f"{uwf.session.repo}/refs/threads/{both[1]}").write_text("garbage\n")

    assert uwf("thread", "diff", *both).status == 5


# An argument whose bytes are no text: no verb records it, nor changes anything.

BYTES = "\udcff"


def test_what_is_no_text_is_refused_by_each_verb_and_changes_nothing(uwf: Uwf) -> None:
    thread = uwf.stepped()
    file = uwf.file("graph: []\n", name="more.yaml")
    before = uwf.json("thread", "show", thread)
    for words in (
        ("start", "demo", "-p", BYTES),
        ("start", "demo", "-p", "x", "--agent", BYTES),
        ("run", thread, "--agent", BYTES),
        ("amend", thread, "--agent", BYTES),
        ("amend", thread, "--workflow", BYTES),
        ("amend", thread, "--agent", "x", "-m", BYTES),
        ("append", thread, file, "-m", BYTES),
        ("patch", thread, BYTES),
        ("patch", thread, '{"a": 1}', "-m", BYTES),
        ("pause", thread, "-m", BYTES),
        ("poke", thread, "-m", BYTES),
        ("poke", thread, "--agent", BYTES),
        ("retry", thread, "-m", BYTES),
        ("kill", thread, "-m", BYTES),
    ):
        uwf("thread", *words).refused(1, "is not UTF-8 text")
    assert [each["thread"] for each in uwf.json("thread", "list")] == [thread]
    assert uwf.json("thread", "show", thread) == before
