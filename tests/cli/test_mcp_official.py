"""`uwf mcp` as the official client of the protocol sees it, over stdio, in both eras."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
from cli.program import Uwf
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import CallToolResult, TextContent

Era = Literal["auto", "legacy"]

VERSIONS: dict[Era, str] = {"auto": "2026-07-28", "legacy": "2025-11-25"}


def server(**variables: str) -> StdioServerParameters:
    env = {**os.environ, **variables}
    return StdioServerParameters(command=sys.executable, args=["-m", "uwf_git", "mcp"], env=env)


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_official_client_plays_a_turn(uwf: Uwf, tmp_path: Path, era: Era) -> None:
    thread = uwf.stepped()
    step = tmp_path / "step"
    step.mkdir()
    turn = {"UWF_REPO": str(uwf.session.repo), "UWF_THREAD_ID": thread, "UWF_ROLE": "checker"}

    async def play() -> tuple[str, set[str], list[CallToolResult]]:
        async with Client(server(**turn, UWF_STEP_DIR=str(step)), mode=era) as client:
            assert client.server_info is not None
            assert client.server_info.name == "uwf"
            tools = {tool.name for tool in (await client.list_tools()).tools}
            calls: list[tuple[str, dict[str, Any]]] = [
                ("read_role", {}),
                ("read_step", {"index": -1}),
                ("submit_result", {"meta": {"ok": "yes"}}),
                ("submit_result", {"meta": {"ok": True}, "content": "Grün."}),
            ]
            results = [await client.call_tool(name, arguments) for name, arguments in calls]
            return client.protocol_version, tools, results

    version, tools, (role, last, refused, accepted) = asyncio.run(play())

    assert version == VERSIONS[era]
    assert {"read_role", "read_step", "read_thread", "submit_result"} <= tools
    assert '"name": "checker"' in text_of(role)
    assert '"role": "writer"' in text_of(last)
    assert refused.is_error
    assert "meta.ok" in text_of(refused)
    assert not accepted.is_error
    submitted = json.loads((step / "submitted.json").read_text())
    assert submitted == {"meta": {"ok": True}, "content": "Grün."}


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_official_client_reads_a_refusal(era: Era) -> None:
    async def ask() -> tuple[CallToolResult, MCPError]:
        async with Client(server(UWF_REPO="/nowhere"), mode=era) as client:
            result = await client.call_tool("read_thread", {"thread_id": "01"})
            with pytest.raises(MCPError) as caught:
                await client.call_tool("no_such_tool", {})
            return result, caught.value

    result, error = asyncio.run(ask())

    assert result.is_error
    assert "/nowhere does not exist" in text_of(result)
    assert "no_such_tool" in str(error)
