"""ACP client: the client side of the Agent Client Protocol, over an agent's stdin and stdout.

Each request of the agent is answered at once, an unknown one with an error, so that it never waits
for us. Lines that are not messages are log, not failures. The answer's text is the agent's last
message; texts between tool calls go to the trace. Unknown or malformed updates are ignored.
Source: agentclientprotocol.com, version 1; JSON-RPC 2.0.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from uwf_git.agentkit.adapter import AdapterAnswer
from uwf_git.agentkit.records import find, read_usage, tool_event
from uwf_git.agents.nested import StdioProcess

Update = Callable[[dict[str, Any]], None]
Answerer = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Answers ``session/request_permission``."""

_METHOD_NOT_FOUND = -32601
_LONGEST_LOGGED = 2_000

WhyStopped = Literal["timed-out", "silent", "interrupted"]


class RequestFailed(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class WaitingEnded(Exception):
    """A limit was reached, or a signal arrived."""

    def __init__(self, why: WhyStopped) -> None:
        super().__init__(why)
        self.why = why


@dataclass(slots=True)
class WaitLimits:
    timeout_s: float | None = None
    silence_s: float | None = None
    signals: list[int] = field(default_factory=list)
    """Signals that ask this process to end; the signal handler adds them."""

    _began: float = field(default_factory=time.monotonic)
    _heard: float = field(default_factory=time.monotonic)

    def hear(self) -> None:
        self._heard = time.monotonic()

    def check(self) -> None:
        """Raise WaitingEnded if a limit was reached, or a signal arrived."""
        now = time.monotonic()
        if self.signals:
            raise WaitingEnded("interrupted")
        if self.timeout_s is not None and now - self._began >= self.timeout_s:
            raise WaitingEnded("timed-out")
        if self.silence_s is not None and now - self._heard >= self.silence_s:
            raise WaitingEnded("silent")


@dataclass(slots=True)
class AcpClient:
    companion: StdioProcess
    on_update: Update = lambda _update: None
    on_permission: Answerer = lambda _asked: {"outcome": {"outcome": "cancelled"}}
    _last_id: int = 0
    _results: dict[int, dict[str, Any]] = field(default_factory=dict)

    def begin(self, method: str, params: Mapping[str, Any], limits: WaitLimits) -> int:
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        self._send(message, limits)
        return self._last_id

    def request(self, method: str, params: Mapping[str, Any], limits: WaitLimits) -> dict[str, Any]:
        return self.wait(self.begin(method, params, limits), limits)

    def wait(self, number: int, limits: WaitLimits) -> dict[str, Any]:
        while number not in self._results:
            self.listen(limits)
        message = self._results.pop(number)
        error = message.get("error")
        if error is not None:
            told = find(error, str, "message") or "an error without a message"
            detail = find(error, str, "data", "details") or find(error, str, "data", "message")
            code = find(error, int, "code") or 0
            raise RequestFailed(code, f"{told}: {detail}" if detail else told)
        result = message.get("result")
        return result if isinstance(result, dict) else {}

    def listen(self, limits: WaitLimits) -> None:
        limits.check()
        line = self.companion.receive()
        if line is None:
            return
        limits.hear()
        for message in _parse(line):
            self._take(message, limits)

    def has_result(self) -> bool:
        return bool(self._results)

    def notify(self, method: str, params: Mapping[str, Any], limits: WaitLimits) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params}, limits)

    def _take(self, message: dict[str, Any], limits: WaitLimits) -> None:
        method, number = message.get("method"), message.get("id")
        if method is None:
            if isinstance(number, int) and ("result" in message or "error" in message):
                self._results[number] = message
            return
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if method == "session/update" and isinstance(params.get("update"), dict):
            self.on_update(params["update"])
        if number is None:
            return
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": number}
        if method == "session/request_permission":
            answer["result"] = self.on_permission(params)
        else:
            told = f"this client does not know {str(method)[:100]}"
            answer["error"] = {"code": _METHOD_NOT_FOUND, "message": told}
        self._send(answer, limits)

    def _send(self, message: Mapping[str, Any], limits: WaitLimits) -> None:
        line = json.dumps(message).encode()
        self.companion.send(line, wait=limits.check)


def _parse(line: bytes) -> list[dict[str, Any]]:
    """Return the messages in *line*: a message, [] for log, or a whole batch (version 2)."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    found = value if isinstance(value, list) else [value]
    messages = [each for each in found if isinstance(each, dict) and "jsonrpc" in each]
    if not messages and line.strip():
        sys.stderr.write(line[:_LONGEST_LOGGED].decode(errors="replace") + "\n")
    return messages


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

    say: Callable[[Mapping[str, Any]], None] = lambda _event: None
    """Shows what the agent says and does, as it comes."""

    _messages: dict[str, str] = field(default_factory=dict)
    _tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    _trace: list[dict[str, Any]] = field(default_factory=list)
    _tokens: dict[str, Any] = field(default_factory=dict)
    _segment: int = 0

    def take(self, update: Mapping[str, Any]) -> None:
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
        if len(self._trace) < _MOST_EVENTS:
            self._trace.append(dict(event))

    def build_answer(self) -> AdapterAnswer:
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
        self.say({"type": "message" if is_whole else "piece", "text": text})
        self._messages[key] = text if is_whole else self._messages.get(key, "") + text

    def _take_tool(self, update: Mapping[str, Any]) -> None:
        name = find(update, str, "toolCallId") or ""
        if name not in self._tools:
            # The text after a tool is another message.
            self._segment += 1
            self._tools[name] = tool_event(None, None, None, ok=False)
            self.say({"type": "tool", "name": find(update, str, "title") or "a tool"})
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


_TOOL_KEYS = {"title": "name", "kind": "kind", "rawInput": "input", "rawOutput": "output"}


def _read_text(content: Any) -> str:
    """Return the text of a content block, or of a list of them, also as tools wrap them."""
    if isinstance(content, list):
        return "".join(_read_text(each) for each in content)
    if find(content, str, "type") == "content":
        return _read_text(find(content, dict, "content"))
    return find(content, str, "text") or ""


def _read_usage(told: Mapping[str, Any]) -> dict[str, Any]:
    usage = read_usage(
        find(told, dict, "usage"),
        inputTokens="inputTokens",
        outputTokens="outputTokens",
        cachedInputTokens="cachedReadTokens",
        reasoningTokens="thoughtTokens",
    )
    # Gemini reports it elsewhere.
    quota = find(told, dict, "_meta", "quota", "token_count")
    return usage or read_usage(quota, inputTokens="input_tokens", outputTokens="output_tokens")
