"""`uwf mcp --workflows` as a chat program sees it: the official client, over stdio."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chatting import ASKING, answer, ask, call, chat, stdio, wait
from cli.program import Uwf
from mcp import StdioServerParameters
from programs import write_program

WRITES = '#!/bin/sh\necho \'{"meta": {"text": "hello"}}\'\n'
GATED = '#!/bin/sh\ncat gate; echo \'{"meta": {"text": "hello"}}\'\n'

Server = Callable[..., StdioServerParameters]


@pytest.fixture
def uwf(uwf: Uwf) -> Uwf:
    uwf("workflow", "put", uwf.file(ASKING))
    return uwf


@pytest.fixture
def server(uwf: Uwf, tmp_path: Path) -> Server:
    """Return how the server is started; its user's own agent is `./mine`."""

    def start(script: str = WRITES, **variables: str) -> StdioServerParameters:
        write_program(tmp_path / "mine", script)
        return stdio(tmp_path, UWF_REPO=str(uwf.session.repo), UWF_AGENT="./mine", **variables)

    return start


async def start(client: Any, workflow: str = "asking") -> str:
    return await call(client, "start_workflow", workflow=workflow, prompt="Say hello.")


def test_task_asks_the_user_and_completes(uwf: Uwf, server: Server) -> None:
    async def play() -> tuple[str, dict[str, Any], list[str]]:
        async with chat(server()) as client:
            task = await start(client)
            await wait(client, task)
            asked = await ask(client, "get", task)
            await answer(client, task, None, "decline")
            assert await ask(client, "get", task) == asked
            key = await answer(client, task, {"ok": False, "content": "Once more."})
            await wait(client, task)
            # A key that was answered is ignored, and never used again.
            again = {key: {"action": "accept", "content": {"ok": True}}}
            await ask(client, "update", task, inputResponses=again)
            assert key not in (await ask(client, "get", task))["inputRequests"]
            await answer(client, task, {"ok": True})
            await wait(client, task)
            texts = [
                (await client.read_resource(f"uwf://thread/{task}.{kind}")).contents[0]
                for kind in ("md", "json", "svg")
            ]
            return (
                task,
                await ask(client, "get", task),
                [getattr(each, "text", "") for each in texts],
            )

    task, done, (markdown, document, picture) = asyncio.run(play())

    assert done["status"] == "completed"
    assert not done["result"]["isError"]
    assert done["result"]["structuredContent"] == {
        "thread": task, "status": "completed", "state": {}, "meta": {"ok": True}
    }  # fmt: skip
    assert "answered in the MCP client mcp " in markdown
    assert json.loads(document)["depth"] == 4
    assert picture.startswith("<svg")
    assert uwf("verify").status == 0


def test_killed_server_and_client_lose_nothing(server: Server, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    params = {"name": "start_workflow", "arguments": {"workflow": "asking", "prompt": "Say hello."}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    how = server(GATED)
    with subprocess.Popen(
        [how.command, *how.args], env=how.env, cwd=how.cwd,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as killed:  # fmt: skip
        assert killed.stdin is not None
        assert killed.stdout is not None
        killed.stdin.write(json.dumps(request).encode() + b"\n")
        killed.stdin.flush()
        text = json.loads(killed.stdout.readline())["result"]["content"][0]["text"]
        killed.send_signal(signal.SIGKILL)
    task = text.split()[1]

    async def go_on() -> list[dict[str, Any]]:
        async with chat(how) as client, chat(how) as other:
            working = await ask(client, "get", task)
            (tmp_path / "gate").write_text("")
            await wait(client, task)
            views = [await ask(each, "get", task) for each in (client, other)]
            await answer(other, task, {"ok": True})
            # The slower of two clients: its answer is to no open question.
            late = {next(iter(views[0]["inputRequests"])): {"action": "accept", "content": {}}}
            await ask(client, "update", task, inputResponses=late)
            await wait(client, task)
            return [working, *views, await ask(client, "get", task)]

    working, mine, others, done = asyncio.run(go_on())
    assert working["status"] == "working"
    assert mine["status"] == "input_required"
    assert mine == others
    assert done["status"] == "completed"


def test_agent_starts_a_child_and_cannot_answer_for_its_person(uwf: Uwf, server: Server) -> None:
    parent = uwf.begun("./mine")

    async def play() -> tuple[str, dict[str, Any]]:
        async with chat(server(UWF_THREAD_ID=parent)) as client:
            child = await start(client)
            await wait(client, child)
            return child, await ask(client, "get", child)

    child, task = asyncio.run(play())
    assert uwf.json("thread", "show", child)["parentThread"] == parent
    assert task["status"] == "working"
    assert f"waits for a person as boss: `uwf thread answer {child}`" in task["statusMessage"]


def test_setting_forbids_answers(uwf: Uwf, server: Server) -> None:
    uwf.json("config", "set", "uwf.chatAnswers", "false")

    async def play() -> dict[str, Any]:
        async with chat(server()) as client:
            task = await start(client)
            await wait(client, task)
            return await ask(client, "get", task)

    assert "inputRequests" not in asyncio.run(play())


@pytest.mark.parametrize(
    "arguments",
    [
        {"workflow": "./demo.yaml"},
        {"workflow": "asking; rm -rf /"},
        {"workflow": ASKING},
        {"workflow": "asking", "agent": "sh -c id"},
        {"workflow": "asking", "workdir": "/"},
        {"workflow": "asking", "trust": True},
        {"workflow": "asking", "state": []},
    ],
)
def test_start_takes_a_name_and_no_command(
    uwf: Uwf, server: Server, arguments: dict[str, Any]
) -> None:
    async def play() -> bool:
        async with chat(server()) as client:
            result = await client.call_tool("start_workflow", {"prompt": "x", **arguments})
            return result.is_error

    assert asyncio.run(play())
    assert uwf.json("thread", "list", "--all") == []


def test_untrusted_agent_of_a_file_is_not_started(uwf: Uwf, server: Server) -> None:
    """A workflow that was fetched brings its commands, which nobody here has read."""
    uwf("workflow", "put", uwf.file(ASKING.replace("human", "./foreign")))
    uwf("agent", "untrust", "./foreign")

    async def play() -> str:
        async with chat(server()) as client:
            result = await client.call_tool("start_workflow", {"workflow": "asking", "prompt": "x"})
            assert result.is_error
            return str(result.content)

    assert "role boss: ./foreign is not trusted here" in asyncio.run(play())
