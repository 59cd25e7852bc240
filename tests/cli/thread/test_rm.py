import io
from pathlib import Path

import pytest
from cli.program import Uwf
from cli.ran import Ran
from commands.flows import CHECKS


@pytest.fixture
def ended(uwf: Uwf) -> str:
    """Return a thread that was killed."""
    thread = uwf.begun()
    uwf.json("thread", "kill", thread)
    return thread


def asked(uwf: Uwf, answer: str, monkeypatch: pytest.MonkeyPatch, *threads: str) -> Ran:
    """Run it at a terminal with prepared input."""
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    return uwf("thread", "rm", *threads, stdin_is_tty=True, stderr_is_tty=True)


def listed(uwf: Uwf) -> list[str]:
    return [row["thread"] for row in uwf.json("thread", "list", "--all")]


def test_script_confirms_by_option_and_gets_the_removed_threads(uwf: Uwf, ended: str) -> None:
    rows = uwf.json("thread", "rm", ended, "--yes")

    assert [list(row) for row in rows] == [
        ["thread", "workflowName", "status", "depth", "commit", "remotes"]
    ]
    assert (rows[0]["thread"], rows[0]["status"], rows[0]["remotes"]) == (ended, "killed", [])
    assert listed(uwf) == []
    assert uwf("thread", "rm", ended, "--yes").status == 1


def test_script_that_does_not_is_refused(uwf: Uwf, ended: str) -> None:
    ran = uwf("thread", "rm", ended)

    assert (ran.status, ran.out) == (2, "")
    assert "no terminal to confirm" in ran.err
    assert "hint: say so: --yes" in ran.err
    assert listed(uwf) == [ended]


@pytest.mark.parametrize("answer", ["\n", "n\n", "", "yesterday\n"])
def test_thread_stays_unless_the_person_says_yes(
    answer: str, uwf: Uwf, ended: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = asked(uwf, answer, monkeypatch, ended)

    assert (ran.status, ran.out) == (1, "")
    assert f"{ended}  demo, killed, 0 steps\n" in ran.err
    assert "Remove this thread for good? [y/N] " in ran.err
    assert listed(uwf) == [ended]


def test_person_is_asked_once_for_all(
    uwf: Uwf, ended: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = uwf.begun()
    uwf.json("thread", "kill", other)

    ran = asked(uwf, " Y \n", monkeypatch, ended, other)

    assert ran.status == 0
    assert "Remove these 2 threads for good? [y/N] " in ran.err
    assert listed(uwf) == []


def test_person_is_told_how_many_branches_go_along(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    uwf.json("workflow", "put", uwf.file(CHECKS, name="checks.yaml"))
    told = uwf.json("thread", "start", "checks", "-p", "Do it.", "--agent", uwf.agent())
    thread = str(told["thread"])
    for _ in range(3):
        uwf.json("thread", "step", thread)
    uwf.json("thread", "kill", thread)

    ran = asked(uwf, "y\n", monkeypatch, thread)

    assert f"{thread}  checks, killed, 1 step\nand 2 branches\nRemove these 3" in ran.err
    assert listed(uwf) == []


def test_active_thread_stops_it_before_anything_goes(uwf: Uwf, ended: str) -> None:
    active = uwf.begun()

    ran = uwf("thread", "rm", ended, active, "--yes")

    assert (ran.status, ran.out) == (1, "")
    assert f"hint: end it first: `uwf thread kill {active} -m …`" in ran.err
    assert listed(uwf) == [active, ended]


def test_what_went_before_another_would_not_is_reported(uwf: Uwf, ended: str) -> None:
    other = uwf.begun()
    uwf.json("thread", "kill", other)
    lock = Path(f"{uwf.session.repo}/refs/archive/{other}.lock")
    lock.touch()

    ran = uwf("thread", "rm", ended, other, "--yes")
    lock.unlink()

    assert ran.status == 4
    assert f'"thread":"{ended}"' in ran.out
    assert other not in ran.out
    assert listed(uwf) == [other]


def test_remote_that_has_it_is_reported_and_restores_it(
    uwf: Uwf, ended: str, tmp_path: Path
) -> None:
    hub = str(tmp_path / "hub.git")
    uwf.json("init", hub)
    uwf.json("remote", "add", "origin", hub)
    uwf.json("push")

    ran = uwf("thread", "rm", ended, "--yes")

    assert '"remotes":["origin"]' in ran.out
    assert f"note: origin still has {ended}; the next fetch brings it back" in ran.err
    assert listed(uwf) == []
    uwf.json("fetch")
    assert listed(uwf) == [ended]
