from realcli.conftest import FRONT, Cli
from realcli.vendors import COPILOT

VENDOR = COPILOT


def test_refused_tool(cli: Cli) -> None:
    answer = cli.ask({"run": "touch made"}, {"text": FRONT}, permission="none")

    assert [each["ok"] for each in answer.trace if each["type"] == "tool"] == [False]
    assert not (cli.project / "made").exists()
