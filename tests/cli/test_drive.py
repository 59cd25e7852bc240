"""`uwf drive`: what it refuses; what it does is in tests/commands/fleet."""

import errno
from pathlib import Path
from unittest.mock import Mock

import pytest
from cli.program import Uwf

from uwf_git.commands.fleet import executors


def test_a_store_without_a_remote_has_no_hub(uwf: Uwf) -> None:
    uwf("drive").refused(1, "there is no remote yet")


def test_a_url_with_a_password_is_sent_to_no_machine(uwf: Uwf) -> None:
    uwf("remote", "add", "origin", "https://me:token@example.org/hub.git")
    assert "token" not in uwf("drive").refused(1, "would be sent to every machine").err


def test_a_run_without_shared_memory_does_not_begin(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A read-only /dev/shm.
    failed = Mock(side_effect=OSError(errno.EROFS, "Read-only file system"))
    monkeypatch.setattr(executors, "ProcessPoolExecutor", failed)

    words = ("run", uwf.file(), "-p", "x", "--agent", "true", "--on", "local:1")
    uwf("init")
    uwf(*words).refused(1, "there is no remote yet")
    uwf("remote", "add", "origin", "hub.git")
    uwf(*words).refused(1, "/dev/shm")

    assert uwf.json("thread", "list", "--all") == []


# `uwf work`: what it refuses; what it does is in tests/commands/fleet.

WHOLE = "01J7K9M2XNPQR5VWBCDF8G3H4T"


def test_the_hint_of_an_untrusted_command_is_for_this_machine(uwf: Uwf, tmp_path: Path) -> None:
    hub, thread = str(tmp_path / "hub.git"), uwf.begun()
    uwf("init", "--shared", hub)
    uwf("remote", "add", "origin", hub)
    uwf("push")
    environ = {**uwf.session.environ, "HOME": str(tmp_path / "other")}

    ran = uwf("work", thread, "--hub", hub, environ=environ)
    ran.refused(1, "hint: read it; if it may run here, add --trust to this command")
    words = ("work", thread, "--hub", hub, "--trust")
    ran = uwf(*words, "--project", "none.git", environ=environ, cwd=str(tmp_path))
    assert f"git ls-remote failed: fatal: '{tmp_path}/none.git' does not appear" in ran.err
    # The clone of the hub may go with the machine.
    ran = uwf(*words, environ=environ)
    assert "uwf --repo" not in ran.err
    assert "in a clone of the hub, between `uwf fetch` and `uwf push`" in ran.err


def test_a_hub_that_is_not_there_is_told(uwf: Uwf, tmp_path: Path) -> None:
    environ = {**uwf.session.environ, "HOME": str(tmp_path)}
    uwf("work", WHOLE, "--hub", str(tmp_path / "none"), environ=environ).refused(1, "none")


@pytest.mark.parametrize("home", ["", "/dev/null"])
def test_a_home_that_can_keep_no_clone_is_told(uwf: Uwf, home: str) -> None:
    ran = uwf("work", WHOLE, "--hub", "x", environ={**uwf.session.environ, "HOME": home})
    ran.refused(1, "hint: set HOME to a directory that you may write")


def test_a_hub_is_the_one_that_its_path_names_here(uwf: Uwf, tmp_path: Path) -> None:
    environ = {**uwf.session.environ, "HOME": str(tmp_path)}
    for name in ("one", "two", "one"):
        (tmp_path / name).mkdir(exist_ok=True)
        uwf("work", WHOLE, "--hub", "hub.git", environ=environ, cwd=str(tmp_path / name))
    assert len(list((tmp_path / ".uwf" / "hubs").iterdir())) == 2
