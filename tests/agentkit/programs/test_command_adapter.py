import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import write_program

from uwf_git.agentkit.programs.command import CommandAdapter, EndedProgram, ProgramCall, Report
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, AskFailed

Make = Callable[..., CommandAdapter]


def build(question: AdapterQuestion, folder: str) -> ProgramCall:
    words = ("fake-cli", "--out", f"{folder}/last")
    return ProgramCall(words, question.prompt, {"FAKE_ADDED": "1"})


def read(ended: EndedProgram) -> Report:
    text = ended.run.stdout.decode()
    if ended.run.exit_code != 0:
        spent = AdapterAnswer(text=text, usage={"turns": 1}) if "spent" in text else None
        raise AskFailed("model-error", "the model has failed", partial=spent)
    usage = {"turns": 5, "outputTokens": 7, "costUsd": 9}
    return Report(AdapterAnswer(text=text, session=ended.question.session, usage=usage))


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Write a fake program, and make an adapter for it."""

    def write(script: str, **options: Any) -> CommandAdapter:
        program = tmp_path / "bin" / "fake-cli"
        program.parent.mkdir(exist_ok=True)
        write_program(program, script)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        given: dict[str, Any] = {
            "name": "fake",
            "programs": ("other-cli", "fake-cli"),
            "build": build,
        }
        return CommandAdapter(**given | {"read": read} | options)

    return write


def question(prompt: str = "", **options: Any) -> AdapterQuestion:
    return AdapterQuestion(prompt=prompt, **{"environ": dict(os.environ)} | options)


def test_it_sees_what_it_may_see(make: Make) -> None:
    adapter = make("env", environ=("FAKE_*",))
    others = {"CLAUDECODE": "1", "FAKE_KEY": "k", "AWS_SECRET": "s", "JAVA_HOME": "/j"}
    environ = dict(os.environ) | others

    seen = adapter.ask(question(environ=environ, settings={"env": "JAVA_HOME"})).text

    names = {line.split("=")[0] for line in seen.splitlines()}
    assert names >= {"FAKE_KEY", "FAKE_ADDED", "JAVA_HOME", "HOME", "PATH"}
    assert not names & {"CLAUDECODE", "AWS_SECRET"}


def test_every_question_has_a_folder_of_its_own_in_the_step(make: Make, tmp_path: Path) -> None:
    adapter = make('cat >"$2"; echo log >&2; echo done')

    adapter.ask(question("one", step_dir=str(tmp_path)))
    adapter.ask(question("two", step_dir=str(tmp_path)))

    assert (tmp_path / "fake-1/last").read_text() == "one"
    assert (tmp_path / "fake-2/last").read_text() == "two"
    assert (tmp_path / "fake-1/stderr").read_text() == "log\n"


def test_program_that_build_names_is_found(make: Make) -> None:
    adapter = make("", programs=(), build=lambda _asked, _folder: ProgramCall(("echo", "hi")))

    assert adapter.ask(question()).text == "hi\n"


@pytest.mark.parametrize(
    ("script", "limits", "kind", "told"),
    [
        ("echo x; sleep 60", {"timeout_s": 0.2}, "timed-out", "longer than 0.2 s"),
        ("sleep 60", {"silence_s": 0.2}, "silent", "printed nothing for 0.2 s"),
    ],
)
def test_program_that_was_stopped_has_no_answer(
    make: Make, script: str, limits: dict[str, Any], kind: str, told: str
) -> None:
    with pytest.raises(AskFailed, match=told) as caught:
        make(script).ask(question(**limits))

    assert caught.value.kind == kind


def test_what_it_had_said_before_it_was_stopped_is_kept(make: Make) -> None:
    with pytest.raises(AskFailed) as caught:
        make("echo spent; sleep 60").ask(question(timeout_s=0.3))

    assert caught.value.partial == AdapterAnswer(text="spent\n", usage={"turns": 1})


def test_unparsed_output_is_kept(make: Make) -> None:
    with pytest.raises(AskFailed) as caught:
        make("echo raw; exit 1").ask(question())

    assert (caught.value.kind, caught.value.partial) == ("model-error", AdapterAnswer(text="raw\n"))


def test_flood_is_no_answer(make: Make) -> None:
    with pytest.raises(AskFailed, match="printed more than 67,108,864 bytes") as caught:
        make("head -c 80000000 /dev/zero").ask(question())

    assert caught.value.kind == "too-much-output"
    assert caught.value.partial is not None


def test_request_to_end_is_reported(make: Make) -> None:
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGTERM))
    timer.start()

    with pytest.raises(AskFailed) as caught:
        make("sleep 60").ask(question())

    timer.join()
    assert caught.value.kind == "interrupted"


def test_missing_folder_is_reported(make: Make, tmp_path: Path) -> None:
    with pytest.raises(AskFailed, match="cannot start fake") as caught:
        make("true").ask(question(workdir=str(tmp_path / "nowhere")))

    assert caught.value.kind == "crashed"


@pytest.mark.parametrize(
    ("spent", "usage"),
    [
        # A cost whose beginning nobody knows would be counted twice.
        ({}, {"turns": 5, "outputTokens": 7}),
        (
            {"turns": 2, "outputTokens": 3, "costUsd": 4},
            {"turns": 3, "outputTokens": 7, "costUsd": 5},
        ),
        ({"turns": 6, "costUsd": 10}, {"turns": 5, "outputTokens": 7, "costUsd": 9}),
    ],
)
def test_count_that_goes_on_is_reported_apart(
    make: Make, spent: dict[str, Any], usage: dict[str, Any]
) -> None:
    adapter = make("echo x", anew=("outputTokens",))

    assert adapter.ask(question(session="s", spent=spent)).usage == usage


def test_settings_of_its_own_say_how_it_takes_a_schema_and_tools() -> None:
    row = CommandAdapter("x", build, read, schema_way="its own --x", takes_mcp=True)

    assert row.takes_schema
    assert row.keys["schema"] == "words: ask for the fields in words, not by its own --x"
    assert row.keys.keys() == {"schema", "mcp"}
    assert CommandAdapter("x", build, read).keys == {}
