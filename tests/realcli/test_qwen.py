from realcli.conftest import FRONT, Cli
from realcli.vendors import QWEN

VENDOR = QWEN


def test_resume_costs_what_it_costs_alone(cli: Cli) -> None:
    first, second = cli.ask_twice()

    assert second.text.strip() == FRONT.strip()
    # Agents in its background cost something as well, now and then.
    assert second.usage["turns"] == first.usage["turns"]
    assert second.usage["outputTokens"] <= 3 * first.usage["outputTokens"]


def test_tool_that_is_not_offered(cli: Cli) -> None:
    assert cli.ask({"run": "touch made"}, permission="default").text == "no shell tool was offered"


def test_budget(cli: Cli) -> None:
    failure = cli.fail({"run": "echo hi"}, args="--max-tool-calls 1")

    assert failure.kind == "no-result"
    assert "budget" in failure.message
