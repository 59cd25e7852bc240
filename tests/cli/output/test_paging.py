"""Paging: a real pager reads what the verbs print."""

from pathlib import Path

import pytest
from cli.program import Uwf, make_uwf

from uwf_git.cli.session import Session
from uwf_git.store.git.config import set_config


@pytest.fixture
def person(tmp_path: Path, session: Session, capfd: pytest.CaptureFixture[str]) -> Uwf:
    """Return the program at a terminal, whose pager marks each line."""
    uwf = make_uwf(tmp_path, session, capfd)
    mine = {"TERM": "xterm", "NO_COLOR": "1", "GIT_PAGER": "sed 's/^/P:/'", "COLUMNS": "60"}
    return Uwf(uwf.place, uwf.session._replace(environ={**uwf.session.environ, **mine}), capfd)


SCREEN = {"stdout_is_tty": True, "output_format": "text"}


def test_read_diff_and_logs_are_paged_and_nothing_else(person: Uwf) -> None:
    thread = person.begun()
    person.json("thread", "step", thread)

    for words in (("read", thread), ("diff", thread, thread), ("logs", thread)):
        shown = person("thread", *words, **SCREEN).out
        assert all(line.startswith("P:") for line in shown.splitlines()), shown
    assert person("thread", "read", thread, **SCREEN).out.startswith("P:Do it.\n")
    assert "P:" not in person("thread", "list", **SCREEN).out
    assert "P:" not in person("thread", "read", thread).out
    assert person("thread", "read", thread, "--raw", **SCREEN).out.startswith("P:# Do it.\n")


def test_the_store_names_no_pager(person: Uwf, tmp_path: Path) -> None:
    thread = person.begun()
    set_config(str(Path(str(person.session.repo), "config")), "core.pager", f"touch {tmp_path}/ran")
    environ = {**person.session.environ, "PAGER": "sed 's/^/P:/'"}
    del environ["GIT_PAGER"]

    assert person("thread", "read", thread, **SCREEN, environ=environ).out.startswith("P:Do it.\n")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("own", "charset"), [({}, "utf-8"), ({"LESSCHARSET": "x"}, "x")])
def test_less_is_told_what_it_reads(person: Uwf, own: dict[str, str], charset: str) -> None:
    environ = {**person.session.environ, "GIT_PAGER": "echo $LESSCHARSET", "LC_ALL": "C", **own}

    assert person("thread", "read", person.begun(), **SCREEN, environ=environ).out == f"{charset}\n"


def test_errors_are_not_paged(person: Uwf) -> None:
    for verb in ("read", "logs"):
        ran = person("thread", verb, "7ZZZ", **SCREEN)
        assert (ran.status, ran.out) == (1, "")
        assert ran.err.startswith("error: there is no thread 7ZZZ")


def test_pager_that_is_left_early_ends_the_command_well(person: Uwf) -> None:
    thread = person.begun(
        person.agent("""echo '{"meta": {"text": "x"}, "content": "'$(seq 30000)'"}'""")
    )
    person.json("thread", "step", thread)
    environ = {**person.session.environ, "GIT_PAGER": "head -n 1"}

    ran = person("thread", "read", thread, **SCREEN, environ=environ)

    assert (ran.status, ran.out) == (0, "Do it.\n")
    assert person("thread", "list", **SCREEN).out
