import json
from collections.abc import Callable

from cli.program import Ran

HELLO = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}\n'
READ = b'{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "read_thread"}}\n'


def test_short_way_answers_as_the_long_one(ran: Callable[..., Ran]) -> None:
    env = {"UWF_THREAD_ID": "01J00000000000000000000001", "UWF_REPO": "nowhere.git"}
    short = ran("uwf_git", "mcp", fed=HELLO + b"\n" + READ, env=env)
    # Any option takes the click path.
    assert short == ran("uwf_git", "mcp", "--role", "x", fed=HELLO + b"\n" + READ, env=env)
    assert (short.status, short.err) == (0, "")
    greeting, refusal = map(json.loads, short.out.splitlines())
    assert greeting["result"]["serverInfo"]["name"] == "uwf"
    assert refusal["result"]["isError"] is True


def test_short_way_tells_a_failure_in_a_line(ran: Callable[..., Ran]) -> None:
    failed = ran("uwf_git", "mcp", fed=HELLO, env={"UWF_TEST_NOW": "soon"})

    assert (failed.status, failed.out) == (2, "")
    assert failed.err.startswith("error: UWF_TEST_NOW is 'soon'")


def test_short_way_does_without_click(ran: Callable[..., Ran]) -> None:
    told = ran("uwf_git", "mcp", fed=HELLO, env={"PYTHONPROFILEIMPORTTIME": "1"}).err
    imported = {line.rpartition("|")[2].strip() for line in told.splitlines()}

    assert "uwf_git.commands.mcp.server" in imported
    assert not imported & {"click", "dulwich", "inspect"}
