import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agentkit.person import Seat
from cli.program import Uwf

GOOD = '{"ok": true}'

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


def events(uwf: Uwf, thread: str, git: Callable[..., str]) -> list[str]:
    form = "--format=%(trailers:key=Uwf-Event,valueonly)"
    return git("log", form, f"refs/threads/{thread}", cwd=Path(str(uwf.session.repo))).split()


@pytest.mark.parametrize(
    ("text", "content", "state"),
    [
        ('{"meta": {"ok": true}, "content": "Fine."}', "Fine.", {}),
        ('{"meta": {"ok": true}, "state": {"a": 1}, "rung": "x", "session": "y"}', "", {"a": 1}),
        ('{"ok": true}', "", {}),
        ("---\nok: true\n---\nFine.\n", "Fine.\n", {}),
    ],
)
def test_file_holds_what_an_agent_may_print(
    text: str, content: str, state: dict[str, Any], uwf: Uwf, thread: str
) -> None:
    uwf.json("thread", "answer", thread, "--file", uwf.file(text, name="answer.md"))

    step = newest(uwf, thread)
    assert (step["meta"], step["content"]) == ({"ok": True}, content)
    assert not step.keys() & {"rung", "session"}
    assert uwf.json("thread", "show", thread)["state"] == state


def test_text_may_stand_in_a_file_of_its_own(uwf: Uwf, thread: str) -> None:
    meta, text = uwf.file(GOOD, name="meta.json"), uwf.file("Grün.\n", name="text.md")

    uwf.json("thread", "answer", thread, "--file", meta, "--content-file", text)

    assert newest(uwf, thread)["content"] == "Grün.\n"


def test_invalid_answer_leaves_nothing(uwf: Uwf, thread: str, git: Callable[..., str]) -> None:
    file = uwf.file('{"meta": {"ok": true}, "content": "a"}', name="a.json")
    beside = uwf.file('{"ok": true, "content": "my reasons"}', name="b.json")
    for words, status, told in [
        ((), 2, "there is no answer; checker is asked for `ok` (required): true or false"),
        (("--content", "x"), 2, "a text and no fields"),
        (("--meta", GOOD, "--file", "-"), 2, "given twice, by --meta and by --file"),
        (("--meta", GOOD, "--content", "x", "--content-file", "-"), 2, "the text of the answer"),
        (("--file", file, "--content", "b"), 2, "by --content and by --file"),
        (("--file", beside), 1, "content among its keys, which the role does not declare"),
        (("--meta", "{ok: true}"), 2, "--meta is not JSON"),
        (("--meta", "true"), 1, "meta: true is not of type 'object'"),
        (("--meta", '{"ok": 1}'), 1, "meta.ok: 1 is not of type 'boolean'"),
        (("--meta", GOOD, "--content", "\udcff"), 1, "the text is not UTF-8 text"),
        (("--meta", GOOD, "-m", "\udcff"), 1, "the message is not UTF-8 text"),
        (("--meta", GOOD, "--head", "?"), 2, "?"),
        (("--meta", GOOD, "--head", "0000000000000"), 4, "moved on while this was under way"),
        (("--file", "/no/such"), 1, "/no/such cannot be read"),
    ]:
        ran = uwf("thread", "answer", thread, *words).refused(status, told)
        assert len(ran.err.splitlines()) == 2
        assert events(uwf, thread, git)[0] == "wait"


def test_standard_input_is_read_for_one_option(
    uwf: Uwf, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    ran = uwf("thread", "answer", thread, "--meta", "-", "--content-file", "-")
    ran.refused(2, "standard input is to be read twice")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("  \n", "answer.md holds no answer: it is empty"),
        ("Looks good to me.", "neither a JSON object nor text with front matter"),
        ('{"meta": ', "holds no answer: the output is"),
        ("---\nok: [\n---\n", "the front matter is not YAML"),
        ('{"meta": {}, "content": 3}', '"content" in the output is not a string'),
    ],
)
def test_file_that_is_no_answer_is_reported_with_its_name(
    text: str, told: str, uwf: Uwf, thread: str
) -> None:
    ran = uwf("thread", "answer", thread, "--file", uwf.file(text, name="answer.md"))
    ran.refused(1, told)
    assert "agent" not in ran.err


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
