import json
import os
import subprocess
import sys
from collections.abc import Callable

from cli.program import Ran


def test_server_answers_at_once_and_ends_with_its_input() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "uwf_git", "mcp"],
        env=os.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for number in (1, 2):
            server.stdin.write(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % number)
            server.stdin.flush()
            assert json.loads(server.stdout.readline())["id"] == number
        server.stdin.close()

    assert server.returncode == 0


def test_client_that_left_is_no_failure(ran: Callable[..., Ran]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        done = ran("uwf_git", "mcp", fed=b"x\n", stdout=gone)

    assert (done.status, done.err) == (141, "")
