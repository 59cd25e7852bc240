import pytest
from realcli.conftest import FRONT, Cli
from realcli.vendors import CLAUDE

VENDOR = CLAUDE


def test_resume_costs_what_it_costs_alone(cli: Cli) -> None:
    first, second = cli.ask_twice()

    assert first.usage["costUsd"] > 0
    assert second.usage["costUsd"] == pytest.approx(first.usage["costUsd"])
    assert second.usage["inputTokens"] == first.usage["inputTokens"]


def test_refused_tool(cli: Cli) -> None:
    answer = cli.ask({"run": 'python3 -c \'open("made", "w")\''}, {"text": FRONT})

    assert answer.text == FRONT
    refused = answer.trace[-1]
    assert (refused["type"], refused["name"], refused["allowed"]) == ("permission", "Bash", False)
    assert not (cli.project / "made").exists()


def test_limit(cli: Cli) -> None:
    failure = cli.fail({"status": 429, "message": "scripted error"})

    assert failure.kind == "rate-limit"
    assert "scripted error" in failure.message
