"""`uwf drive`: what it refuses; what it does is in tests/commands/fleet."""

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
