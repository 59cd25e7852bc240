import json
from collections.abc import Callable
from typing import Any

import pytest
from agentkit.conftest import MakeContext, Turn, make_step
from cli.program import Ran
from programs import write_program

from uwf_git.agentkit.programs.playing import build_question, option
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion
from uwf_git.engine.moderator import lazy_list
from uwf_git.errors import BadUsage

# An adapter whose program is a shell script; it tells its session on the first line.
ADAPTER = """\
import sys
from uwf_git.agentkit.turn import AdapterAnswer, AskFailed
from uwf_git.agentkit.programs.command import CommandAdapter, ProgramCall
from uwf_git.agentkit.programs.command import Report
from uwf_git.agentkit.programs.playing import adapter_main
from uwf_git.agentkit.turn import split_args

def build(question, folder):
    session = question.session or "new"
    words = split_args(question.settings)
    return ProgramCall(("fake-cli", session, *words), question.prompt)

def read(ended):
    session, _, text = ended.run.stdout.decode().partition("\\n")
    answer = AdapterAnswer(
        text=text, session=session, usage={"turns": 1}, trace=({"type": "tool", "name": "sh"},)
    )
    if ended.run.exit_code:
        raise AskFailed("auth", "log in first", hint="fake login", partial=answer)
    return Report(answer)

ADAPTER = CommandAdapter(
    name="fake", programs=("fake-cli",), build=build, read=read, resumes=True,
    tell=lambda record: (),
)
sys.exit(adapter_main(ADAPTER, about="Plays for tests.", keys={"colour": "its colour"})())
"""

Play = Callable[..., Ran]


@pytest.fixture
def play(turn: Turn, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Play the role ``counter`` with a shell script in place of an agent program."""
    step_dir = turn.place / "step"
    step_dir.mkdir()
    (turn.place / "adapter.py").write_text(ADAPTER)
    places = {"UWF_STEP_DIR": str(step_dir), "UWF_TRACE": str(step_dir / "trace.jsonl")}

    def run(script: str, *words: str, **environ: str) -> Ran:
        program = write_program(turn.place / "fake-cli", script)
        given = {"UWF_FAKE_PROGRAM": program} | places | environ
        return turn.python(str(turn.place / "adapter.py"), *words, turn.thread, **given)

    return run


FIELDS = "printf '%s\\n' s1 --- 'words: 3' --- 'Three words.'"


def events(turn: Turn) -> list[dict[str, Any]]:
    lines = (turn.place / "step/trace.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert all(event.pop("time") > 0 for event in found)
    return found


def test_answer_becomes_a_result(play: Play, turn: Turn) -> None:
    ran = play(f"cat >&2; {FIELDS}").says(0, "# You are counter")
    assert json.loads(ran.out) == {
        "meta": {"words": 3},
        "content": "Three words.\n",
        "usage": {"turns": 1},
        "session": "s1",
        "rung": "front-matter",
    }
    assert (turn.place / "step/prompt.md").read_text() == ran.err
    assert events(turn) == [
        {"type": "tool", "name": "sh"},
        {"type": "rung", "rung": "front-matter"},
    ]


def test_agent_is_corrected_in_its_conversation(play: Play) -> None:
    ran = play(f'if [ "$1" = new ]; then echo s1; echo words: three; else {FIELDS}; fi')

    reply = json.loads(ran.out)
    assert (reply["rung"], reply["content"]) == ("front-matter-corrected", "words: three\n")
    assert (reply["usage"], reply["session"]) == ({"turns": 2}, "s1")


def test_words_without_fields_are_kept(play: Play, turn: Turn) -> None:
    ran = play("echo s$$; echo I have no idea.")

    assert (ran.status, ran.out) == (1, "I have no idea.\n")
    assert ran.err.startswith("error: the answer holds no fields")
    assert "\nhint: " in ran.err
    failure = json.loads((turn.place / "step/failure.json").read_text())
    assert failure == {"kind": "no-meta", "usage": {"turns": 2}}


def test_failure_is_reported_with_its_cost(play: Play, turn: Turn) -> None:
    ran = play("echo s1; echo so far; exit 1")

    assert (ran.status, ran.out) == (1, "so far\n")
    assert ran.err == "error: log in first\nhint: fake login\n"
    failure = json.loads((turn.place / "step/failure.json").read_text())
    assert failure == {"kind": "auth", "usage": {"turns": 1}}
    assert events(turn)[-1] == {"type": "error", "kind": "auth", "message": "log in first"}


def test_adapter_that_is_stopped_says_so(play: Play, turn: Turn) -> None:
    ran = play("kill -TERM $(ps -o ppid= -p $PPID); sleep 60")

    assert (ran.status, ran.err) == (130, "error: fake was stopped from outside\n")
    assert json.loads((turn.place / "step/failure.json").read_text())["kind"] == "interrupted"


STOPPED = """\
import os, signal, sys, time
from uwf_git.agentkit.programs.playing import adapter_main

class Model:
    name, takes_schema, resumes = "model", False, False
    def ask(self, question):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

sys.exit(adapter_main(Model())())
"""


def test_adapter_without_a_program_says_so_too(turn: Turn) -> None:
    ran = turn.python("-c", STOPPED, turn.thread, UWF_STEP_DIR=str(turn.place))

    assert (ran.status, ran.err) == (130, "error: model was stopped from outside\n")
    assert json.loads((turn.place / "failure.json").read_text())["kind"] == "interrupted"


def test_settings_come_from_words_and_environment(play: Play) -> None:
    script = 'echo s1; printf "%s\\n" --- "words: $#" ---; echo "$*"'

    ran = play(script, "--args", "a 'b c'", UWF_FAKE_ARGS="other")

    assert json.loads(ran.out)["content"] == "new a b c\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--mdoel=x"], "error: no setting is called --mdoel=x\n"),
        (["x"], "error: unexpected word x\n"),
        (["--timeout=abc"], "error: timeout is 'abc', not a number of seconds\n"),
    ],
)
def test_wrong_words_are_refused(play: Play, words: list[str], told: str) -> None:
    ran = play(FIELDS, *words)

    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(told)


def test_extractor_that_cannot_work_does_not_lose_the_words(play: Play) -> None:
    environ = {"UWF_EXTRACTOR_MODEL": "m", "UWF_EXTRACTOR_URL": "no url"}

    ran = play("echo s$$; echo I have no idea.", **environ)

    assert (ran.status, ran.out) == (1, "I have no idea.\n")
    assert "the extractor: " in ran.err


class Named:
    name = "fake"
    takes_schema = False
    resumes = True

    def ask(self, question: AdapterQuestion) -> AdapterAnswer:
        raise NotImplementedError


def step(role: str, agent: str, session: str | None, tokens: int) -> dict[str, Any]:
    taken = make_step(role, agent=agent, usage={"outputTokens": tokens})
    return taken if session is None else taken | {"session": session}


STEPS = [
    step("reviewer", "uwf-fake", "s1", 1),
    step("reviewer", "/opt/bin/uwf-fake --model x", "s2", 20),
    step("reviewer", "env A='b c' uwf-fake", "s2", 300),
    step("developer", "uwf-fake", "s3", 4_000),
    step("reviewer", "uwf-other", "s4", 50_000),
]


def test_conversation_of_the_last_visit_goes_on_if_asked_for(context: MakeContext) -> None:
    known = context(steps=STEPS, visit=5)

    question = build_question(Named(), known, {"resume": "visits"}, environ={})

    assert (question.session, question.spent) == ("s2", {"outputTokens": 320})
    assert "# The task" in question.prompt


@pytest.mark.parametrize(
    ("resume", "attempt"), [({}, 1), ({"resume": "never"}, 1), ({"resume": "visits"}, 2)]
)
def test_otherwise_a_new_one_begins(
    context: MakeContext, resume: dict[str, str], attempt: int
) -> None:
    known = context(steps=STEPS, visit=5, attempt=attempt)

    question = build_question(Named(), known, resume, environ={})

    assert (question.session, question.spent) == (None, {})


@pytest.mark.parametrize(
    "steps",
    [
        [],
        STEPS[3:],
        [step("reviewer", "uwf-fake", None, 1)],
        [step("reviewer", "uwf-fake", "--allowed-tools=all", 1)],
    ],
)
def test_without_an_old_conversation_a_new_one_begins(
    context: MakeContext, steps: list[dict[str, Any]]
) -> None:
    question = build_question(Named(), context(steps=steps), {"resume": "visits"}, environ={})

    assert question.session is None


@pytest.mark.parametrize("resume", ["visits", "never"])
def test_looking_for_a_conversation_reads_no_more_than_that(
    context: MakeContext, resume: str
) -> None:
    read: list[int] = []

    def load(place: int) -> dict[str, Any]:
        read.append(place)
        session = "old" if place < 990 else "new"
        return step("reviewer", "uwf-fake", session, place)

    known = context(steps=lazy_list(1_000, load), visit=1_001, depth=1_000)

    question = build_question(Named(), known, {"resume": resume}, environ={})

    spent = {"outputTokens": sum(range(990, 1_000))}
    assert (question.session, question.spent) == (
        ("new", spent) if resume == "visits" else (None, {})
    )
    # The prompt shows fifty older steps.
    assert min(read) >= 949


def test_a_setting_is_no_option_of_the_program() -> None:
    assert option("--model", "small") == ("--model", "small")
    with pytest.raises(BadUsage, match="--model is '--yolo'"):
        option("--model", "--yolo")
