"""ACP client: the client side of the Agent Client Protocol, over an agent's stdin and stdout.

Each request of the agent is answered at once, an unknown one with an error, so that it never waits
for us. Lines that are not messages are log, not failures.
Source: agentclientprotocol.com, version 1; JSON-RPC 2.0.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from uwf_git.agentkit.extraction.records import find
from uwf_git.agents.stdio_process import StdioProcess

Update = Callable[[dict[str, Any]], None]
Answerer = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Answers ``session/request_permission``."""

_METHOD_NOT_FOUND = -32601
_LONGEST_LOGGED = 2_000

WhyStopped = Literal["timed-out", "silent", "interrupted"]


class RequestFailed(Exception):
    """The agent answered a request with an error."""

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
    """How long to wait for the agent."""

    timeout_s: float | None = None
    silence_s: float | None = None
    signals: list[int] = field(default_factory=list)
    """Signals that ask this process to end; the signal handler adds them."""

    _began: float = field(default_factory=time.monotonic)
    _heard: float = field(default_factory=time.monotonic)

    def hear(self) -> None:
        """Restart the limit of silence."""
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
    """A conversation with one agent process."""

    companion: StdioProcess
    on_update: Update = lambda _update: None
    on_permission: Answerer = lambda _asked: {"outcome": {"outcome": "cancelled"}}
    _last_id: int = 0
    _results: dict[int, dict[str, Any]] = field(default_factory=dict)

    def begin(self, method: str, params: Mapping[str, Any], limits: WaitLimits) -> int:
        """Send a request; return its number.

        Raises:
            StdioEnded: the agent closed its input.
            WaitingEnded: the agent did not read in time.
        """
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        self._send(message, limits)
        return self._last_id

    def request(self, method: str, params: Mapping[str, Any], limits: WaitLimits) -> dict[str, Any]:
        """Send a request and wait for its result; a result that is not an object counts as {}."""
        return self.wait(self.begin(method, params, limits), limits)

    def wait(self, number: int, limits: WaitLimits) -> dict[str, Any]:
        """Wait for the result of the request *number*.

        Raises:
            RequestFailed: the agent answered with an error.
            StdioEnded, StdioOutputTooLong: the agent ended, or has to be ended.
            WaitingEnded: see WaitLimits.
        """
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
        """Handle the next message, if one comes within a moment."""
        limits.check()
        line = self.companion.receive()
        if line is None:
            return
        limits.hear()
        for message in _parse(line):
            self._take(message, limits)

    def has_result(self) -> bool:
        """Return whether there is a result that ``wait`` has not taken."""
        return bool(self._results)

    def notify(self, method: str, params: Mapping[str, Any], limits: WaitLimits) -> None:
        """Send a notification."""
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
    """Return the messages in *line*: one, none if it is log, or those of a batch (version 2)."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    found = value if isinstance(value, list) else [value]
    messages = [each for each in found if isinstance(each, dict) and "jsonrpc" in each]
    if not messages and line.strip():
        sys.stderr.write(line[:_LONGEST_LOGGED].decode(errors="replace") + "\n")
    return messages
