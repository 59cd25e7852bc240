from realcli.conftest import FRONT, Cli
from realcli.vendors import CODEX

VENDOR = CODEX


def test_sandbox_lets_it_work_in_the_project(cli: Cli) -> None:
    assert cli.ask({"run": "touch made"}, {"text": FRONT}).text == FRONT
    assert (cli.project / "made").exists()


def test_read_only_means_it(cli: Cli) -> None:
    assert cli.ask({"run": "touch made"}, {"text": FRONT}, permission="read-only").text == FRONT
    assert not (cli.project / "made").exists()


def test_limit(cli: Cli) -> None:
    assert cli.fail({"status": 429, "message": "scripted error"}).kind == "rate-limit"
