"""The calls of a chat over stdio: none waits for another one."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest

from uwf_git.agents.group import check_cancelled
from uwf_git.cli import ui
from uwf_git.cli.ui import answer_at_once
from uwf_git.commands.mcp.server import McpServer, McpTool


def line(method: str, number: int | None = None, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if number is None else message | {"id": number}).encode()


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_wait_holds_no_other_call_and_ends_when_nobody_waits_for_it(
    capsys: pytest.CaptureFixture[str], *, is_cancelled: bool
) -> None:
    begun, ended, out = Event(), Event(), ""

    def wait(_arguments: Mapping[str, Any]) -> str:
        begun.set()
        try:
            while not Event().wait(0.01):
                check_cancelled()
        except KeyboardInterrupt:
            ended.set()
        return "still running"

    def give() -> Iterator[bytes]:
        nonlocal out
        yield line("tools/call", 1, name="wait")
        assert begun.wait(20)
        yield line("ping", 2)
        while "\n" not in out:
            Event().wait(0.01)
            out += capsys.readouterr().out
        if is_cancelled:
            yield line("notifications/cancelled", requestId=1)
            assert ended.wait(20)
            yield line("notifications/cancelled", requestId=1)
        yield b"no JSON"

    answer_at_once(McpServer("1", "", [McpTool("wait", "", {}, wait)]), give())

    replies = [json.loads(each) for each in (out + capsys.readouterr().out).splitlines()]
    ids = [reply["id"] for reply in replies]
    assert ids[0] == 2
    assert sorted(map(str, ids[1:])) == (["None"] if is_cancelled else ["1", "None"])


def test_calls_of_one_id_all_end_and_a_cancelled_call_does_not_begin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ui, "_MOST_AT_ONCE", 2)
    begun = [Event(), Event()]
    waiting = iter(begun)

    def wait(_arguments: Mapping[str, Any]) -> str:
        next(waiting).set()
        with suppress(KeyboardInterrupt):
            while not Event().wait(0.01):
                check_cancelled()
        return "over"

    def give() -> Iterator[bytes]:
        yield line("tools/call", 1, name="wait")
        yield line("tools/call", 1, name="wait")
        assert all(each.wait(20) for each in begun)
        yield line("tools/call", 2, name="wait")
        yield line("notifications/cancelled", requestId=2)

    answer_at_once(McpServer("1", "", [McpTool("wait", "", {}, wait)]), give())

    assert [json.loads(each)["id"] for each in capsys.readouterr().out.splitlines()] == [1, 1]


def test_failed_write_ends_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui, "write_stdout", Mock(side_effect=BrokenPipeError))
    with pytest.raises(BrokenPipeError):
        answer_at_once(McpServer("1", "", []), [line("ping", 1)])
