import io
import json
from pathlib import Path

import pytest
from cli.program import Uwf, clone, make_hub

from uwf_git.store.git.config import set_config


def test_what_is_newer_there_is_listed_and_reported(uwf: Uwf, thread: str) -> None:
    hub = make_hub(uwf)
    uwf.json("push")
    other = clone(uwf, hub)
    uwf.json("thread", "step", thread, "--workdir", ".", "--agent", uwf.agent(), **other)
    uwf.json("push", **other)
    uwf.json("thread", "step", thread)
    ran = uwf("push")
    assert ran.status == 4
    (row,) = json.loads(ran.out)["rejected"]
    assert (row["ref"], row["status"]) == (f"refs/threads/{thread}", "fetch-first")
    assert ran.err.splitlines() == [
        f"error: origin has something of refs/threads/{thread} that is not here",
        "hint: `uwf fetch origin` brings it here, then push again; or it says why it does not",
    ]
    assert uwf("push", "--format", "text").out.startswith(f"fetch-first refs/threads/{thread}\n")


def hook_at_hub(uwf: Uwf, name: str, script: str) -> None:
    hook = uwf.agent(script, name=name)
    hooks = Path(make_hub(uwf), "hooks")
    hooks.mkdir(exist_ok=True)
    Path(hook).rename(hooks / name)


def test_a_refusal_is_listed_and_reported(uwf: Uwf) -> None:
    uwf.begun()
    hook_at_hub(uwf, "pre-receive", "echo 'not today' >&2\nexit 1")
    ran = uwf("push", "--format", "json")
    assert ran.status == 1
    rejected = json.loads(ran.out)["rejected"]
    assert {row["status"] for row in rejected} == {"refused"}
    assert {row["said"] for row in rejected} == {"not today"}
    assert {row["problem"] for row in rejected} == {"pre-receive hook declined"}
    assert json.loads(ran.err)["error"]["code"] == "push-refused"


def test_what_the_hub_warns_of_is_told(uwf: Uwf) -> None:
    hook_at_hub(uwf, "post-receive", "echo 'warning: no bell' >&2\necho 'hello' >&2")
    uwf.begun()

    pushed = uwf("push")

    assert pushed.status == 0
    assert pushed.err.splitlines() == ["origin: warning: no bell"]


def test_a_missing_remote_is_one_line(uwf: Uwf) -> None:
    uwf.begun()
    uwf.json("remote", "add", "origin", "nowhere.git")
    for words in (["push"], ["fetch"], ["push", "else"]):
        ran = uwf(*words)
        assert (ran.status, ran.out) == (1, "")
        assert len(ran.err.splitlines()) == 2


def make_project(uwf: Uwf) -> str:
    """Give the store a work tree and an empty hub, and begin a thread."""
    thread = uwf.begun()
    set_config(f"{uwf.session.repo}/config", "core.bare", "false")
    make_hub(uwf)
    return thread


SENT = "1 thread and 1 workflow, with all prompts and answers, to "


def test_first_push_of_a_project_without_a_terminal_needs_yes(uwf: Uwf) -> None:
    make_project(uwf)
    ran = uwf("push").refused(2, "error: the first push from this project's repository to origin")
    assert SENT in ran.err
    assert "`uwf push --yes origin`" in ran.err
    pushed = uwf("push", "--yes", "--format", "text")
    assert pushed.out.count("created") == 2
    assert SENT in pushed.err
    again = uwf("push", "--format", "text")
    assert (again.status, again.out, again.err) == (0, "2 unchanged\n", "")


@pytest.mark.parametrize(
    "words",
    [
        ("drive", "{}", "--on", "local:1"),
        (
            "run",
            "demo",
            "-p",
            "x",
            "--agent",
            "uwf-shell true",
            "--on",
            "concurrent.futures:ThreadPoolExecutor",
        ),
        ("thread", "run", "{}", "--claim"),
    ],
)
def test_a_run_that_pushes_is_no_way_around_the_first_push(
    uwf: Uwf, words: tuple[str, ...]
) -> None:
    thread = make_project(uwf)
    ran = uwf(*(word.format(thread) for word in words))
    ran.refused(2, "error: the first push from this project's repository to origin")
    assert "`uwf push --yes origin 0" in ran.err


@pytest.mark.parametrize(("answer", "is_pushed"), [("y\n", True), ("n\n", False), ("", False)])
def test_first_push_of_a_project_asks_at_a_terminal(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch, answer: str, *, is_pushed: bool
) -> None:
    make_project(uwf)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    ran = uwf("push", "--format", "text", stdin_is_tty=True, stderr_is_tty=True)
    assert SENT in ran.err
    assert "[y/N] " in ran.err
    assert ran.out.count("created") == (2 if is_pushed else 0)
    assert (ran.status == 0) is is_pushed
    if not is_pushed:
        assert "error: nothing was pushed" in ran.err
        assert uwf("push").status == 2
