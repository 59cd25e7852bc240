"""`uwf drive`: what it refuses; what it does is in tests/commands/fleet."""

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


def test_a_run_elsewhere_takes_no_option_of_a_run_here(uwf: Uwf) -> None:
    ran = uwf("run", "demo", "-p", "x", "--on", "local:1", "--background")
    assert ran.status == 2
    assert "--on goes without" in ran.err
