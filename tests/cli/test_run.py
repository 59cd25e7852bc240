import re

import pytest
from cli.program import ANSWER, Uwf


def test_run_without_an_agent_does_not_begin(uwf: Uwf) -> None:
    uwf("run", uwf.file(), "-p", "x").refused(1, "no agent is bound to role writer, checker")
    assert uwf.json("thread", "list", "--all") == []


def test_run_whose_agent_is_not_found_does_not_begin(uwf: Uwf) -> None:
    agent = uwf.agent()

    ran = uwf("run", uwf.file(), "-p", "x", "--agent", agent, "--agent", "checker=no-such-program")
    ran.refused(1, "no thread was made: agent command 'no-such-program' is not on the PATH")
    assert "it would play checker" in ran.err
    assert uwf.json("thread", "list", "--all") == []


def test_run_in_the_background_returns_when_it_is_driven(uwf: Uwf) -> None:
    script = f"until [ -e go ]; do sleep 0.01; done; {ANSWER}"

    driver = uwf.json("run", uwf.file(), "-p", "x", "--agent", uwf.agent(script), "--background")

    assert list(driver) == ["workflow", "thread", "pid", "log"]
    uwf("thread", "run", driver["thread"], "--background").refused(4, f"pid {driver['pid']}")
    late = uwf("thread", "wait", driver["thread"], "--timeout", "0")
    (uwf.place / "go").touch()
    [rest] = uwf.json("thread", "wait", driver["thread"], "--timeout", "30")
    assert (late.status, rest["status"]) == (4, "completed")
    with open(driver["log"], encoding="utf-8") as log:
        told = log.read()
    assert re.search(r"^\S+Z step 2 checker: What was said\.", told, re.MULTILINE)


def test_modules_in_the_work_directory_are_not_imported_by_a_driver(uwf: Uwf) -> None:
    (uwf.place / "click.py").write_text("raise SystemExit('not this one')")

    driver = uwf.json("run", uwf.file(), "-p", "x", "--agent", uwf.agent(), "--background")

    [rest] = uwf.json("thread", "wait", driver["thread"], "--timeout", "30")
    assert rest["status"] == "completed"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["nothing", "-p", "x"], 1, "there is no workflow nothing"),
        (["./nothing.yaml", "-p", "x"], 1, "./nothing.yaml cannot be read"),
        (["-", "-p", "x"], 1, "the file is empty"),
        (["demo", "-p", "x", "--max-steps", "0"], 2, "'--max-steps'"),
        (["demo", "-p", "x", "--until", "\udcff"], 1, "--until is not UTF-8 text"),
        (["demo", "-p", "x", "--agent", "\udcff"], 1, "--agent is not UTF-8 text"),
    ],
)
def test_wrong_usage_is_reported_and_run_nothing(
    words: list[str], status: int, said: str, uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open("/dev/null", encoding="utf-8") as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        ran = uwf("run", *words)

    assert (ran.status, ran.out) == (status, "")
    assert said in ran.err.splitlines()[0]
    assert uwf.json("thread", "list") == []
