"""Conversations with a model, in memory, for as long as this process lives.

After a model's tool calls come their results: endpoints accept nothing else there.
"""

import os

from uwf_git.agentkit.extraction.adapter import AskFailed
from uwf_git.agentkit.llm.messages import (
    Message,
    ModelMessage,
    ToolResult,
    ToolResults,
    UserMessage,
)


class Conversations:
    """The conversations of one adapter, each under a name that is unique among processes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kept: dict[str, tuple[Message, ...]] = {}

    def begin(self, prompt: str, session: str | None) -> tuple[str, tuple[Message, ...]]:
        """Return the session's name, and its messages with *prompt* at the end.

        Raises:
            AskFailed: this process has no such *session*.
        """
        if session is None:
            return f"{self._name}-{os.urandom(8).hex()}", (UserMessage(prompt),)
        if session not in self._kept:
            raise AskFailed(
                "no-session",
                f"{self._name} does not know the conversation {session:.60} any more",
                hint="its conversations end with its process; set resume=never",
            )
        return session, go_on(self._kept[session], prompt)

    def keep(self, session: str, messages: tuple[Message, ...]) -> None:
        """Keep the messages of *session*."""
        self._kept[session] = messages


def go_on(messages: tuple[Message, ...], prompt: str) -> tuple[Message, ...]:
    """Return *messages* with *prompt* at the end."""
    last = messages[-1] if messages else None
    if isinstance(last, ModelMessage) and last.calls:
        results = tuple(ToolResult(call.id, "Received; see below.") for call in last.calls)
        return (*messages, ToolResults(results, prompt))
    return (*messages, UserMessage(prompt))
