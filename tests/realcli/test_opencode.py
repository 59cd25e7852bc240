from dataclasses import replace

import pytest
from realcli.conftest import FRONT, Cli
from realcli.vendors import OPENCODE

from uwf_git.agentkit.adapter import NoAnswer

VENDOR = OPENCODE


def test_refused_tool(cli: Cli) -> None:
    with cli.model({"run": "touch made"}, {"text": FRONT}) as model:
        asked = cli.question(model, permission="ask")
        environ = {**asked.environ, "OPENCODE_PERMISSION": '{"bash": "ask"}'}
        with pytest.raises(NoAnswer) as caught:
            cli.vendor.adapter.ask(replace(asked, environ=environ))

    assert caught.value.kind == "refused-permission"
    assert not (cli.project / "made").exists()
