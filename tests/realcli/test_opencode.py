from dataclasses import replace

import pytest
from realcli.conftest import FRONT, Cli
from realcli.vendors import OPENCODE

from uwf_git.agentkit.turn import AskFailed

VENDOR = OPENCODE


def test_refused_tool(cli: Cli) -> None:
    with cli.model({"run": "touch made"}, {"text": FRONT}) as model:
        question = cli.question(model, permission="ask")
        environ = {**question.environ, "OPENCODE_PERMISSION": '{"bash": "ask"}'}
        with pytest.raises(AskFailed) as caught:
            cli.vendor.adapter.ask(replace(question, environ=environ))

    assert caught.value.kind == "refused-permission"
    assert not (cli.project / "made").exists()
