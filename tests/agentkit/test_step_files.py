import json
import os
import sys
from pathlib import Path

import pytest
from agentkit.conftest import MakeContext, Turn

from uwf_git.agentkit import AgentContext
from uwf_git.agentkit.ladder import NoMeta
from uwf_git.agentkit.running import complete
from uwf_git.agentkit.turn import (
    FAILURE,
    PROMPT,
    SUBMITTED,
    AskFailed,
    extend_prompt,
    open_trace,
    read_submitted,
    write_failure,
    write_prompt,
)


def test_prompt_is_kept_with_what_an_adapter_put_after_it(tmp_path: Path) -> None:
    write_prompt(str(tmp_path), "Do it \ud800.\r\n")

    extend_prompt(str(tmp_path), "Mend it.", "Mend it. In JSON.")
    extend_prompt(str(tmp_path), "Do it \ud800.\r\n", "{}")
    assert (tmp_path / PROMPT).read_bytes() == b"Do it ?.\r\n"
    extend_prompt(str(tmp_path), "Do it \ud800.\r\n", "Do it \ud800.\r\nIn JSON.\n")

    assert (tmp_path / PROMPT).read_bytes() == b"Do it ?.\r\nIn JSON.\n"


def test_without_a_step_nothing_is_written(tmp_path: Path) -> None:
    write_prompt(None, "x")
    extend_prompt(None, "x", "x, in JSON")
    extend_prompt(str(tmp_path), "x", "x, in JSON")
    write_failure(None, {})
    with open_trace(None) as note:
        note({"type": "turn"})

    assert read_submitted(None) is None
    assert list(tmp_path.iterdir()) == []


def test_event_is_shortened_to_what_can_be_read(tmp_path: Path) -> None:
    deep: list[object] = []
    for _ in range(100):
        deep = [deep]

    with open_trace(str(tmp_path / "trace")) as note:
        note({"output": "x" * 1_000_000, "deep": deep, "many": [0] * 10_000, "odd": {1}})

    line = (tmp_path / "trace").read_text()
    event = json.loads(line)
    assert len(line) < 10_000
    assert event["output"].endswith("x[… 996,000 characters left out …]")
    assert (len(event["many"]), event["odd"]) == (200, "{1}")


def test_file_without_an_end_is_not_handed_in(tmp_path: Path) -> None:
    (tmp_path / SUBMITTED).write_text('{"meta": 1}')
    os.truncate(tmp_path / SUBMITTED, 15 * 2**40)

    assert read_submitted(str(tmp_path)) is None

    (tmp_path / SUBMITTED).unlink()
    os.mkfifo(tmp_path / SUBMITTED)

    assert read_submitted(str(tmp_path)) is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_full_disk_costs_the_trace_and_not_the_answer(tmp_path: Path) -> None:
    (tmp_path / FAILURE).symlink_to("/dev/full")

    with open_trace("/dev/full") as note:
        note({"type": "turn"})
    write_failure(str(tmp_path), {"kind": "auth"})


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the environment of an agent in a step."""
    own = {"UWF_STEP_DIR": str(tmp_path), "UWF_TRACE": str(tmp_path / "trace.jsonl")}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    return {**os.environ, **own, "MY_KEY": "k"}


def left(environ: dict[str, str], name: str) -> str:
    return Path(environ["UWF_STEP_DIR"], name).read_text()


def test_fields_that_do_not_fit_are_refused_with_what_is_wrong(
    context: MakeContext, environ: dict[str, str]
) -> None:
    with pytest.raises(NoMeta, match="approved: 'maybe' is not of type 'boolean'"):
        complete(lambda _: "---\napproved: maybe\n---\nFine.", context(), environ)

    assert json.loads(left(environ, "failure.json"))["kind"] == "no-meta"


def test_kind_of_a_failure_of_the_function_is_kept(
    context: MakeContext, environ: dict[str, str]
) -> None:
    def play(_context: AgentContext) -> str:
        raise AskFailed("rate-limit", "no more today")

    with pytest.raises(AskFailed):
        complete(play, context(), environ)

    assert json.loads(left(environ, "failure.json"))["kind"] == "rate-limit"


def test_step_of_an_agent_has_its_prompt_and_trace(turn: Turn) -> None:
    (turn.place / "agent.py").write_text(
        "import sys\nfrom uwf_git.agentkit import create_agent, spawn_cli\n"
        "main = create_agent(lambda _: spawn_cli(['cat'], '---\\nwords: 3\\n---\\nThree.'))\n"
        "sys.exit(main())\n"
    )

    agent = f"{sys.executable} {turn.place}/agent.py"
    turn.uwf("thread", "step", turn.thread, "--agent", agent)

    step = turn.uwf("thread", "show", turn.thread)["step"]
    assert (step["meta"], step["rung"]) == ({"words": 3}, "front-matter")
    texts = {
        name: turn.installed("json-cas", "get", step[name]).out for name in ("prompt", "trace")
    }
    assert "words: 3" in texts["prompt"]
    assert '"cat"' in texts["trace"]
