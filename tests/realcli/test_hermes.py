from realcli.conftest import FRONT, Cli
from realcli.vendors import HERMES

VENDOR = HERMES


def test_commands_can_be_taken_away_in_both_forms(cli: Cli) -> None:
    first = cli.ask({"run": "touch made"}, permission="file")

    second = cli.ask({"run": "touch made"}, permission="file", session=first.session)

    assert first.text.strip() == second.text.strip() == "no shell tool was offered"
    assert not (cli.project / "made").exists()


def test_prompt_that_no_argument_holds_is_refused(cli: Cli) -> None:
    assert cli.ask({"text": FRONT}, prompt="x" * 131_000).text.strip() == FRONT.strip()
    assert cli.fail({"text": FRONT}, prompt="x" * 140_000).kind == "too-long"


def test_resume_costs_what_it_costs_alone(cli: Cli) -> None:
    _first, second = cli.ask_twice()

    assert second.text.strip() == FRONT.strip()
    assert second.usage == {}


def test_model_that_says_nothing(cli: Cli) -> None:
    assert cli.fail({"text": ""}).kind == "no-result"
