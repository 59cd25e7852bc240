import io
from pathlib import Path

import pytest
from cli.program import Ran, Uwf
from commands.flows import CHECKS


@pytest.fixture
def ended(uwf: Uwf) -> str:
    """Return a thread that was killed."""
    return uwf.killed()


def asked(uwf: Uwf, answer: str, monkeypatch: pytest.MonkeyPatch, *threads: str) -> Ran:
    """Run it at a terminal with prepared input."""
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    return uwf("thread", "rm", *threads, stdin_is_tty=True, stderr_is_tty=True)


def listed(uwf: Uwf) -> list[str]:
    return [row["thread"] for row in uwf.json("thread", "list", "--all")]


@pytest.mark.parametrize("answer", ["\n", "n\n", "", "yesterday\n"])
def test_thread_stays_unless_the_person_says_yes(
    answer: str, uwf: Uwf, ended: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = asked(uwf, answer, monkeypatch, ended).refused(1, f"{ended}  demo, killed, 0 steps\n")
    assert "Remove this thread for good? [y/N] " in ran.err
    assert listed(uwf) == [ended]


def test_person_is_asked_once_for_all(
    uwf: Uwf, ended: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = asked(uwf, " Y \n", monkeypatch, ended, uwf.killed())
    ran.says(0, "Remove these 2 threads for good? [y/N] ")
    assert listed(uwf) == []


def test_person_is_told_how_many_branches_go_along(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = uwf.stepped(workflow=CHECKS, steps=3)
    uwf.json("thread", "kill", thread)

    ran = asked(uwf, "y\n", monkeypatch, thread)

    assert f"{thread}  checks, killed, 1 step\nand 2 branches\nRemove these 3" in ran.err
    assert listed(uwf) == []


def test_person_is_told_the_commit_that_brings_it_back(uwf: Uwf, ended: str) -> None:
    commit = uwf.json("thread", "show", ended)["commit"]
    environ = {**uwf.session.environ, "COLUMNS": "40"}
    screen = {"stdout_is_tty": True, "output_format": "text", "environ": environ}

    assert commit in uwf("thread", "rm", ended, "--yes", **screen).out


def test_what_went_before_another_would_not_is_reported(uwf: Uwf, ended: str) -> None:
    other = uwf.killed()
    lock = Path(f"{uwf.session.repo}/refs/archive/{other}.lock")
    lock.touch()

    ran = uwf("thread", "rm", ended, other, "--yes")
    lock.unlink()

    assert ran.status == 4
    assert f'"thread":"{ended}"' in ran.out
    assert other not in ran.out
    assert listed(uwf) == [other]
