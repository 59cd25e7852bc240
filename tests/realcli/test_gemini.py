import subprocess
import sys

from realcli.conftest import Cli
from realcli.vendors import GEMINI

VENDOR = GEMINI


def test_tool_that_is_not_offered(cli: Cli) -> None:
    assert cli.ask({"run": "touch made"}).text == "no shell tool was offered"


def test_tools_of_uwf_can_be_used_once_the_user_has_added_them(cli: Cli) -> None:
    server = (sys.executable, "--", "-P", "-m", "uwf_git", "mcp")
    subprocess.run(
        ["gemini", "mcp", "add", "--scope", "user", "--trust", "uwf", *server],
        cwd=cli.project, env=cli.vendor.environ(cli.home, "http://127.0.0.1:1"),
        stdin=subprocess.DEVNULL, check=True,
    )  # fmt: skip

    reply = cli.play_by_tool()

    assert (reply["meta"], reply["rung"]) == ({"approved": True}, "submitted")
