from functools import partial
from typing import Any

import pytest
from agentkit.person import Seat
from cli.program import Uwf

HOSTILE = """\
name: demo
roles:
  writer:
    description: "\\e[2JWrites\\u202e."
    systemPrompt: "Say \\e]0;owned\\a it."
    outputSchema:
      type: object
      properties: {text: {type: string, description: "\\e[1mbold"}}
      required: [text]
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: $END}
"""


@pytest.fixture
def person(uwf: Uwf, seat: Seat) -> Seat:
    """Start `uwf …` at a terminal."""
    return partial(seat, "-m", "uwf_git", cwd=uwf.place, UWF_REPO=str(uwf.session.repo))


@pytest.fixture
def thread(uwf: Uwf) -> str:
    """Return a thread that waits for a person to play the checker."""
    thread = uwf.begun(uwf.agent(), "checker=human")
    for status in ("ready", "waiting"):
        assert uwf.json("thread", "step", thread)["status"] == status
    return thread


def newest(uwf: Uwf, thread: str) -> dict[str, Any]:
    step: dict[str, Any] = uwf.json("thread", "show", thread)["step"]
    return step


def test_person_at_a_terminal_is_asked_for_each_field(uwf: Uwf, thread: str, person: Seat) -> None:
    me = person("thread", "answer", thread)

    shown = me.answer("> ", "perhaps")
    assert "Your turn as checker (step 2 of demo" in shown
    assert "Do it." in shown
    assert "The last step, by writer" in shown
    assert "ok: true or false." in shown
    me.answer_all("type yes or no", "y", "| ", "I read it.", "| ", ".", "[Y/n] ", "")
    status, shown = me.end()

    assert status == 0
    assert "○ ready  " in shown
    step = newest(uwf, thread)
    assert (step["meta"], step["content"]) == ({"ok": True}, "I read it.")


def test_person_that_leaves_has_recorded_nothing(uwf: Uwf, thread: str, person: Seat) -> None:
    me = person("thread", "answer", thread)
    me.answer("> ", "y")
    me.wait_for("| ")
    me.type("\x03")

    assert me.end()[0] == 130
    assert uwf.json("thread", "show", thread)["status"] == "waiting"


def test_late_answer_is_refused_and_its_text_is_kept(uwf: Uwf, thread: str, person: Seat) -> None:
    me = person("thread", "answer", thread)
    me.answer_all("> ", "y", "| ", "I read it.", "| ", ".")
    me.wait_for("[Y/n] ")
    uwf.json("thread", "answer", thread, "--meta", '{"ok": false}')
    me.type("\n")
    status, shown = me.end()

    assert status in {1, 4}
    assert '{"meta": {"ok": true}, "content": "I read it."}' in shown
    assert "this was your answer" in shown
    assert newest(uwf, thread)["meta"] == {"ok": False}


def test_question_of_others_cannot_write_on_the_terminal(uwf: Uwf, person: Seat) -> None:
    uwf.json("workflow", "put", uwf.file(HOSTILE))
    start = ("thread", "start", "demo", "-p", "Do\x1b[31m it.", "--agent", "human")
    thread, waiting = (uwf.json(*start)["thread"] for _ in range(2))
    uwf.json("thread", "step", waiting)
    me = person("thread", "answer", thread)
    shown = me.answer("> ", "x")
    shown += me.answer("| ", ".")
    me.answer("[Y/n] ", "")
    shown += me.end()[1]

    assert not set(shown) & set("\x1b\x07\u202e")
    uwf.json("thread", "step", thread)
    for words in (
        ("thread", "read", thread),
        ("thread", "list", "--all", "--format", "text"),
        ("thread", "show", waiting, "--format", "text"),
        ("thread", "answer", waiting),
    ):
        ran = uwf(*words)
        assert not set(ran.out + ran.err) & set("\x1b\x07\u202e")
