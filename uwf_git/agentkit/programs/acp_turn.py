"""Build the answer of one prompt from the agent's ``session/update`` notifications.

The answer's text is the agent's last message; texts between tool calls go to the trace. Unknown or
malformed updates are ignored.
Source: agentclientprotocol.com, "Prompt Turn" (version 1) and "Prompt Lifecycle" (version 2).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from uwf_git.agentkit.extraction.adapter import AdapterAnswer
from uwf_git.agentkit.extraction.records import build_usage, find

_MOST_EVENTS = 5_000

_MESSAGES = {"agent_message_chunk", "agent_message"}
_TOOLS = {"tool_call", "tool_call_update"}


@dataclass(slots=True)
class AcpTurn:
    """What the agent reported about one prompt so far."""

    session: str | None = None
    stop_reason: str | None = None
    """Why the turn ended; None while it runs."""

    cost: float | None = None
    """Of the whole session so far, in US dollars."""

    cost_before: float = 0.0
    """What the session had cost before this turn."""

    _messages: dict[str, str] = field(default_factory=dict)
    _tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    _trace: list[dict[str, Any]] = field(default_factory=list)
    _tokens: dict[str, Any] = field(default_factory=dict)
    _segment: int = 0

    def take(self, update: Mapping[str, Any]) -> None:
        """Handle one ``session/update``."""
        kind = update.get("sessionUpdate")
        if kind in _MESSAGES:
            self._take_message(update, is_whole=kind == "agent_message")
        elif kind in _TOOLS:
            self._take_tool(update)
        elif kind == "usage_update" and find(update, str, "cost", "currency") in (None, "USD"):
            amount = find(update, float, "cost", "amount")
            self.cost = self.cost if amount is None else amount
        elif kind == "state_update" and update.get("state") == "idle":
            self.end(update)

    def end(self, told: Mapping[str, Any]) -> None:
        """Handle the end: the result of version 1's prompt, or version 2's idle state."""
        self.stop_reason = find(told, str, "stopReason") or self.stop_reason
        self._tokens = _read_usage(told) or self._tokens

    def note(self, event: Mapping[str, Any]) -> None:
        """Add *event* to the trace."""
        if len(self._trace) < _MOST_EVENTS:
            self._trace.append(dict(event))

    def build_answer(self) -> AdapterAnswer:
        """Return the text, the trace and the usage of this turn."""
        said = [text for text in self._messages.values() if text.strip()]
        told = [{"type": "message", "text": text} for text in said[:-1]]
        usage = dict(self._tokens)
        if self.cost is not None:
            usage["costUsd"] = max(0.0, round(self.cost - self.cost_before, 9))
        return AdapterAnswer(
            text=said[-1] if said else "",
            session=self.session,
            usage=usage,
            trace=(*told, *self._trace),
        )

    def _take_message(self, update: Mapping[str, Any], *, is_whole: bool) -> None:
        key = find(update, str, "messageId") or f"#{self._segment}"
        text = _read_text(update.get("content"))
        self._messages[key] = text if is_whole else self._messages.get(key, "") + text

    def _take_tool(self, update: Mapping[str, Any]) -> None:
        name = find(update, str, "toolCallId") or ""
        if name not in self._tools:
            # The text after a tool is another message.
            self._segment += 1
            self._tools[name] = {"type": "tool", **_UNTOLD}
            if len(self._trace) < _MOST_EVENTS:
                self._trace.append(self._tools[name])
        tool = self._tools[name]
        for key, told in _TOOL_KEYS.items():
            if update.get(key) is not None:
                tool[told] = update[key]
        if update.get("status") is not None:
            tool["ok"] = update["status"] == "completed"
        content = _read_text(update.get("content"))
        if content and tool["output"] is None:
            tool["output"] = content


_UNTOLD = {"name": None, "input": None, "output": None, "ok": False}
_TOOL_KEYS = {"title": "name", "kind": "kind", "rawInput": "input", "rawOutput": "output"}


def _read_text(content: Any) -> str:
    """Return the text of a content block, or of a list of them, also as tools wrap them."""
    if isinstance(content, list):
        return "".join(_read_text(each) for each in content)
    if find(content, str, "type") == "content":
        return _read_text(find(content, dict, "content"))
    return find(content, str, "text") or ""


def _read_usage(told: Mapping[str, Any]) -> dict[str, Any]:
    usage = build_usage(
        inputTokens=find(told, int, "usage", "inputTokens"),
        outputTokens=find(told, int, "usage", "outputTokens"),
        cachedInputTokens=find(told, int, "usage", "cachedReadTokens"),
        reasoningTokens=find(told, int, "usage", "thoughtTokens"),
    )
    # Gemini reports it elsewhere.
    quota = ("_meta", "quota", "token_count")
    return usage or build_usage(
        inputTokens=find(told, int, *quota, "input_tokens"),
        outputTokens=find(told, int, *quota, "output_tokens"),
    )
