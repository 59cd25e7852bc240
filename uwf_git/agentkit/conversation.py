"""Conversations that go on: what was said so far, by the name of the session.

Owns: their memory, which lasts as long as this process. Knows nothing of: models.
Always true: what follows a model's call of a tool is that call's outcome; no endpoint takes
anything else there.
"""

import os

from uwf_git.agentkit.adapter import NoAnswer
from uwf_git.agentkit.model_words import Message, Outcome, Outcomes, Said, Told


class Conversations:
    """The conversations of one adapter, each under a name that no other process gives out."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kept: dict[str, tuple[Message, ...]] = {}

    def begin(self, prompt: str, session: str | None) -> tuple[str, tuple[Message, ...]]:
        """Give the session's name, and what has been said with *prompt* at its end.

        Raises:
            NoAnswer: *session* is none of this process.
        """
        if session is None:
            return f"{self._name}-{os.urandom(8).hex()}", (Told(prompt),)
        if session not in self._kept:
            raise NoAnswer(
                "no-session",
                f"{self._name} does not know the conversation {session:.60} any more",
                hint="its conversations last as long as its process: resume=never",
            )
        return session, go_on(self._kept[session], prompt)

    def keep(self, session: str, messages: tuple[Message, ...]) -> None:
        """Remember what was said."""
        self._kept[session] = messages


def go_on(messages: tuple[Message, ...], prompt: str) -> tuple[Message, ...]:
    """Give *messages* with *prompt* at the end."""
    last = messages[-1] if messages else None
    if isinstance(last, Said) and last.calls:
        outcomes = tuple(Outcome(call.id, "Received; see below.") for call in last.calls)
        return (*messages, Outcomes(outcomes, prompt))
    return (*messages, Told(prompt))
