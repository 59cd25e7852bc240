"""An agent made with the official library of the Agent Client Protocol, for the test of uwf-acp.

It writes what it was given to LOG, asks for a permission, uses a tool, and answers with WORDS:
``python official_acp_agent.py LOG WORDS...``, one of WORDS a prompt.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import acp
from acp import schema
from acp.interfaces import Client


class WordsAgent:
    """Answers each prompt with the next of its words."""

    def __init__(self, log: Path, words: list[str]) -> None:
        self.log, self.words = log, words
        self.client: Client

    def on_connect(self, conn: Client) -> None:
        self.client = conn

    def note(self, **event: Any) -> None:
        with self.log.open("a") as file:
            file.write(json.dumps(event) + "\n")

    async def initialize(self, protocol_version: int, **_: Any) -> acp.InitializeResponse:
        self.note(version=protocol_version)
        return acp.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=schema.AgentCapabilities(load_session=True),
            agent_info=schema.Implementation(name="words", version="1"),
        )

    async def new_session(self, cwd: str, mcp_servers: Any = None, **_: Any) -> Any:
        self.note(cwd=cwd, servers=[each.name for each in mcp_servers or []])
        return acp.NewSessionResponse(session_id="s1")

    async def load_session(self, session_id: str, **_: Any) -> Any:
        self.note(loaded=session_id)
        await self.client.session_update(session_id, acp.update_agent_message_text("from before"))
        return acp.LoadSessionResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> acp.PromptResponse:
        self.note(prompt=[each.text for each in prompt])
        options = [
            schema.PermissionOption(option_id="always", name="Always", kind="allow_always"),
            schema.PermissionOption(option_id="once", name="Once", kind="allow_once"),
        ]
        await self.client.session_update(session_id, acp.update_agent_message_text("I look."))
        call = acp.start_tool_call("c1", "Run tests", kind="execute", raw_input={"cmd": "make"})
        await self.client.session_update(session_id, call)
        asked = schema.ToolCallUpdate(tool_call_id="c1", title="Run tests", kind="execute")
        answer = await self.client.request_permission(session_id, asked, options)
        self.note(outcome=answer.outcome.model_dump(by_alias=True))
        done = acp.update_tool_call("c1", status="completed", raw_output={"exit": 0})
        await self.client.session_update(session_id, done)
        for part in (self.words[0][:5], self.words.pop(0)[5:]):
            await self.client.session_update(session_id, acp.update_agent_message_text(part))
        usage = schema.Usage(total_tokens=18, input_tokens=11, output_tokens=7)
        return acp.PromptResponse(stop_reason="end_turn", usage=usage)

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.note(cancelled=session_id)


if __name__ == "__main__":
    agent: Any = WordsAgent(Path(sys.argv[1]), sys.argv[2:])
    asyncio.run(acp.run_agent(agent))
