import json
import os
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agentkit.conftest import failure_of
from agentkit.traces import find_odd
from programs import write_program

from uwf_git.agentkit import spawn_cli
from uwf_git.agentkit.programs.command import (
    CommandAdapter,
    EndedProgram,
    ProgramCall,
    Report,
    build_call,
    classify_words,
    find_last_words,
)
from uwf_git.agentkit.programs.playing import (
    find_mcp_entry,
    is_below,
    list_deciding_files,
    mcp_toml,
)
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
    failure = failure_of(lambda: make("echo spent; sleep 60").ask(question(timeout_s=0.3)))

    assert failure.partial == AdapterAnswer(text="spent\n", usage={"turns": 1})


def test_unparsed_output_is_kept(make: Make) -> None:
    failure = failure_of(lambda: make("echo raw; exit 1").ask(question()))

    assert (failure.kind, failure.partial) == ("model-error", AdapterAnswer(text="raw\n"))


def test_flood_is_no_answer(make: Make) -> None:
    with pytest.raises(AskFailed, match="printed more than 67,108,864 bytes") as caught:
        make("head -c 80000000 /dev/zero").ask(question())

    assert caught.value.kind == "too-much-output"
    assert caught.value.partial is not None


def test_request_to_end_is_reported(make: Make) -> None:
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGTERM))
    timer.start()

    failure = failure_of(lambda: make("sleep 60").ask(question()))

    timer.join()
    assert failure.kind == "interrupted"


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


LOGIN = "log in"


def test_words_tell_the_kind() -> None:
    for words, kind in [
        ("API Error: 429 too busy", "rate-limit"),
        ("exceeded retry limit, last status: 429 Too Many Requests", "rate-limit"),
        ("You've hit your 5-hour limit · resets 3pm", "rate-limit"),
        ("You have exhausted your capacity on this model.", "rate-limit"),
        ("usage limit reached", "rate-limit"),
        ('{"error":{"code":401,"message":"no"}}', "auth"),
        ("Invalid API key · Please run /login", "auth"),
        ("status 413: no", "too-long"),
        ("prompt is too long: 250000 tokens > 200000 maximum", "too-long"),
        ("something else broke", "model-error"),
        ("API Error: 500 oh", "model-error"),
        ("PERMISSION_DENIED: the caller may not use this model", "auth"),
        ("cannot open ~/.x/sessions (permission denied)", "model-error"),
        ("Disk quota exceeded (os error 122)", "model-error"),
        ("waited 429 seconds", "model-error"),
    ]:
        assert classify_words(words) == kind


def test_colours_hide_no_error() -> None:
    said = "\x1b[91m\x1b[1mError: \x1b[0mModel not found: gpt-9\n  at main.js\n"
    assert find_last_words(said.encode()) == ("Model not found: gpt-9", True)


def test_end_of_a_limit_is_reported_for_limits_alone() -> None:
    limited, broken = (
        Report(AdapterAnswer(text=""), error=said, reset_s=1_760_000_000).explain("x", login=LOGIN)
        for said in ("rate limit", "broken")
    )

    assert limited.facts["resetAt"] == 1_760_000_000_000
    assert "2025-10-09 08:53:20 UTC" in str(limited.hint)
    assert "resetAt" not in broken.facts


# `spawn_cli`, and the call of any command that it shares with uwf-cli.


@pytest.fixture
def step_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the step's folder, as the engine names it to an agent."""
    monkeypatch.setenv("UWF_STEP_DIR", str(tmp_path))
    monkeypatch.setenv("UWF_TRACE", str(tmp_path / "trace.jsonl"))
    return tmp_path


def read_trace(step_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (step_dir / "trace.jsonl").read_text().splitlines()]


def test_prompt_is_the_stdin_and_what_was_printed_is_returned(step_dir: Path) -> None:
    assert spawn_cli(["tr", "a-z", "A-Z"], "say it") == "SAY IT"

    assert (step_dir / "prompt.md").read_text() == "say it"
    (event,) = read_trace(step_dir)
    assert (event["name"], event["output"], event["ok"]) == ("tr", "SAY IT", True)
    assert event["input"] == {"argv": ["tr", "a-z", "A-Z"]}
    assert find_odd([event]) == []


def test_prompt_that_is_too_long_for_a_word_is_refused(tmp_path: Path) -> None:
    call = partial(build_call, ["echo", "{prompt}"], "x" * 200_000, str(tmp_path))
    assert failure_of(call).kind == "too-long"


def test_no_shell_reads_the_command() -> None:
    assert spawn_cli(["echo", "$HOME; exit 1"], "") == "$HOME; exit 1\n"


def test_failure_is_named_and_noted_with_what_it_had_printed(step_dir: Path) -> None:
    with pytest.raises(AskFailed, match="exit status 7: no key") as caught:
        spawn_cli(["sh", "-c", "echo half; echo no key >&2; exit 7"], "x")

    assert caught.value.partial is not None
    assert caught.value.partial.text == "half\n"
    (event,) = read_trace(step_dir)
    assert event["ok"] is False
    assert find_odd([event]) == []


def test_program_that_is_missing_or_takes_too_long_is_named() -> None:
    assert failure_of(lambda: spawn_cli(["no-such-program"], "x")).kind == "missing"
    assert failure_of(lambda: spawn_cli(["sleep", "60"], "x", timeout_s=0.1)).kind == "timed-out"


def test_only_variables_of_providers_and_named_ones_are_passed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_SETTING", "here")
    show = [sys.executable, "-c", "import os; print(os.environ.get('MY_SETTING'))"]

    assert spawn_cli(show, "") == "None\n"
    assert spawn_cli(show, "", env=("MY_SETTING",)) == "here\n"
    assert os.environ["MY_SETTING"] == "here"


def test_files_that_decide_what_runs_are_listed() -> None:
    environ = {"HOME": "/h", "UWF_REPO": "/w/store.git", "GIT_CONFIG_GLOBAL": "/h/mine"}

    assert list_deciding_files(environ) == [
        "/w/store.git",
        "/h/.local/state/uwf/stores",
        "/h/.gitconfig",
        "/h/.config/git",
        "/h/mine",
    ]
    assert list_deciding_files({}) == []


def test_links_hide_nothing(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "link").symlink_to("store")

    assert is_below(f"{tmp_path}/link/new/config", [f"{tmp_path}/store"])
    assert is_below(f"{tmp_path}/store", [f"{tmp_path}/link"])
    assert not is_below(f"{tmp_path}/store.git", [f"{tmp_path}/store"])


TURN = {
    "UWF_REPO": '/srv/a "b"\\c.git',
    "UWF_THREAD_ID": "T",
    "UWF_ROLE": "counter",
    "UWF_STEP_DIR": "/srv/\x7fstep",
    "UWF_HEAD": "",
    "OPENAI_API_KEY": "k",
}
PASSED = {name: TURN[name] for name in ("UWF_REPO", "UWF_THREAD_ID", "UWF_ROLE", "UWF_STEP_DIR")}


def turn(environ: dict[str, str], **settings: str) -> AdapterQuestion:
    return AdapterQuestion(prompt="", environ=environ, settings=settings)


ENTRY: dict[str, Any] = {
    "command": sys.executable,
    "args": ["-P", "-m", "uwf_git", "mcp"],
    "env": PASSED,
}


def test_without_a_turn_or_switched_off_there_is_none() -> None:
    assert find_mcp_entry(turn({"UWF_REPO": "/r"})) is None
    assert find_mcp_entry(turn(TURN, mcp="off")) is None


def test_toml_reads_back() -> None:
    told = tomllib.loads(mcp_toml(turn(TURN)) or "")["mcp_servers"]["uwf"]

    assert told == {**ENTRY, "default_tools_approval_mode": "approve"}


def test_entry_starts_the_server() -> None:
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    ran = subprocess.run(
        [ENTRY["command"], *ENTRY["args"]], input=ping, capture_output=True, check=True
    )

    assert json.loads(ran.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}
