import json
from pathlib import Path

import pytest
from cli.program import ANSWER, Uwf, make_uwf

from uwf_git.cli.settings import Session


@pytest.fixture
def uwf(tmp_path: Path, session: Session, capsys: pytest.CaptureFixture[str]) -> Uwf:
    return make_uwf(tmp_path, session, capsys)


def test_file_is_registered_started_and_driven_to_its_end(uwf: Uwf) -> None:
    ran = uwf("run", uwf.file(), "-p", "Do it.", "--agent", uwf.agent())

    document = json.loads(ran.out)
    thread = document["thread"]
    assert list(document) == ["workflow", "thread", "head", "status", "role", "steps"]
    assert (document["status"], document["role"], document["steps"]) == ("completed", None, 2)
    progress = ran.err.splitlines()
    assert progress[0] == f"thread {thread}"
    assert progress[1].startswith("step 1 writer: What was said. (")
    assert progress[2].startswith("step 2 checker: What was said. (")
    assert f"refs/archive/{thread}" in progress[-1]
    assert uwf.json("workflow", "list")[0]["name"] == "demo"


def test_run_that_nobody_would_play_does_not_begin(uwf: Uwf) -> None:
    ran = uwf("run", uwf.file(), "-p", "x")

    assert ran.status == 1
    assert "no agent is bound to role writer, checker" in ran.err
    assert uwf.json("thread", "list", "--all") == []


def test_registered_workflow_is_run_by_its_name(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file())

    assert uwf.json("run", "demo", "-p", "x", "--agent", uwf.agent())["status"] == "completed"


def test_run_stops_after_so_many_steps(uwf: Uwf) -> None:
    ran = uwf("run", uwf.file(), "-p", "x", "--agent", uwf.agent(), "--max-steps", "1")

    document = json.loads(ran.out)
    assert (document["status"], document["role"], document["steps"]) == ("ready", "writer", 1)
    assert f"refs/threads/{document['thread']}" in ran.err
    assert uwf.json("thread", "step", document["thread"])["role"] == "checker"


def test_failing_agent_ends_the_run_and_says_how_to_go_on(uwf: Uwf) -> None:
    script = f'test "$UWF_ROLE" = writer || {{ echo "no key" >&2; exit 1; }}; {ANSWER}'

    ran = uwf("run", uwf.file(), "-p", "x", "--agent", uwf.agent(script))

    thread = uwf.json("thread", "list")[0]["thread"]
    assert (ran.status, ran.out) == (3, "")
    assert "error: checker failed (agent): exit status 1: no key\n" in ran.err
    assert f"`uwf thread step {thread}` tries again" in ran.err


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["nothing", "-p", "x"], 1, "there is no workflow nothing"),
        (["nothing.yaml", "-p", "x"], 1, "there is no workflow nothing.yaml"),
        (["./nothing.yaml", "-p", "x"], 1, "./nothing.yaml cannot be read"),
        (["dir/", "-p", "x"], 1, "dir/ cannot be read"),
        (["-", "-p", "x"], 1, "the file is empty"),
        (["demo"], 2, "there is no prompt"),
        (["demo", "-p", "x", "--max-steps", "0"], 2, "'--max-steps'"),
        (["demo", "-p", "x", "--agent", "\udcff"], 1, "--agent is not UTF-8 text"),
    ],
)
def test_wrong_words_are_told_and_run_nothing(
    words: list[str], status: int, said: str, uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open("/dev/null", encoding="utf-8") as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        ran = uwf("run", *words)

    assert (ran.status, ran.out) == (status, "")
    assert said in ran.err.splitlines()[0]
    assert uwf.json("thread", "list") == []
