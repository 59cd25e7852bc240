"""`uwf drive`: what it refuses; what it does is in tests/commands/fleet."""

from pathlib import Path

import pytest
from cli.program import Uwf


def test_a_store_without_a_remote_has_no_hub(uwf: Uwf) -> None:
    ran = uwf("drive")
    assert ran.status == 1
    assert "there is no remote yet" in ran.err


def test_a_url_with_a_password_is_sent_to_no_machine(uwf: Uwf) -> None:
    uwf("remote", "add", "origin", "https://me:token@example.org/hub.git")
    ran = uwf("drive")
    assert ran.status == 1
    assert "would be sent to every machine" in ran.err
    assert "token" not in ran.err


@pytest.mark.parametrize(
    "option",
    ["--until=writer", "--jobs=2", "--background", "--stream", "--claim", "--timestamps"],
)
def test_a_run_elsewhere_takes_no_option_of_a_run_here(uwf: Uwf, option: str) -> None:
    ran = uwf("run", "demo", "-p", "x", "--on", "local:1", option)
    assert ran.status == 2
    assert "--on goes without" in ran.err


# `uwf work`: what it refuses; what it does is in tests/commands/fleet.

WHOLE = "01J7K9M2XNPQR5VWBCDF8G3H4T"


def test_a_thread_is_named_whole(uwf: Uwf) -> None:
    ran = uwf("work", WHOLE[:10], "--hub", str(uwf.place))
    assert ran.status == 2
    assert "not a thread id" in ran.err


def test_the_hint_of_an_untrusted_command_is_for_this_machine(uwf: Uwf, tmp_path: Path) -> None:
    hub, thread = str(tmp_path / "hub.git"), uwf.begun()
    uwf("init", "--shared", hub)
    uwf("remote", "add", "origin", hub)
    uwf("push")
    environ = {**uwf.session.environ, "HOME": str(tmp_path / "other")}

    ran = uwf("work", thread, "--hub", hub, environ=environ)

    assert ran.status == 1
    assert "hint: read it; if it may run here, add --trust to this command" in ran.err
    words = ("work", thread, "--hub", hub, "--trust")
    ran = uwf(*words, "--project", "none.git", environ=environ, cwd=str(tmp_path))
    assert f"git ls-remote failed: fatal: '{tmp_path}/none.git' does not appear" in ran.err
    # What is advised names the clone of the hub, where the thread is.
    ran = uwf(*words, environ=environ)
    assert f"uwf --repo {tmp_path}/other/.uwf/hubs/" in ran.err


def test_a_hub_that_is_not_there_is_told(uwf: Uwf, tmp_path: Path) -> None:
    environ = {**uwf.session.environ, "HOME": str(tmp_path)}
    ran = uwf("work", WHOLE, "--hub", str(tmp_path / "none"), environ=environ)
    assert ran.status == 1
    assert "none" in ran.err


def test_a_hub_is_the_one_that_its_path_names_here(uwf: Uwf, tmp_path: Path) -> None:
    environ = {**uwf.session.environ, "HOME": str(tmp_path)}
    for name in ("one", "two", "one"):
        (tmp_path / name).mkdir(exist_ok=True)
        uwf("work", WHOLE, "--hub", "hub.git", environ=environ, cwd=str(tmp_path / name))
    assert len(list((tmp_path / ".uwf" / "hubs").iterdir())) == 2
