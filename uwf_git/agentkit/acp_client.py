"""ACP client: our side of the Agent Client Protocol, over a companion's stdin and stdout.

Owns: requests and their answers, what an agent asks of us meanwhile, and when to stop waiting.
Knows nothing of: prompts, roles, which program it is.
Always true: everything that the agent asks is answered at once (what we do not have, with an
error), so that it never waits for us; lines that are no messages are log, not failures. Waiting
ends when the agent ends, at the deadline, after too long a silence, or when we are to end.
Source: agentclientprotocol.com, version 1; JSON-RPC 2.0.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from uwf_git.agentkit.records import find
from uwf_git.agents.companion import Companion

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
    """We do not wait any longer."""

    def __init__(self, why: WhyStopped) -> None:
        super().__init__(why)
        self.why = why


@dataclass(slots=True)
class Patience:
    """How long to wait, and for what."""

    timeout_s: float | None = None
    silence_s: float | None = None
    signals: list[int] = field(default_factory=list)
    """Those that asked us to end; whoever handles them adds them here."""

    _began: float = field(default_factory=time.monotonic)
    _heard: float = field(default_factory=time.monotonic)

    def hear(self) -> None:
        """Take note that the agent said something."""
        self._heard = time.monotonic()

    def check(self) -> None:
        """Go on.

        Raises:
            WaitingEnded: or not.
        """
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

    companion: Companion
    on_update: Update = lambda _update: None
    on_permission: Answerer = lambda _asked: {"outcome": {"outcome": "cancelled"}}
    _last_id: int = 0
    _results: dict[int, dict[str, Any]] = field(default_factory=dict)

    def begin(self, method: str, params: Mapping[str, Any], patience: Patience) -> int:
        """Send a request, and give its number.

        Raises:
            CompanionEnded: nobody listens.
            WaitingEnded: nobody listened in time.
        """
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        self._send(message, patience)
        return self._last_id

    def request(self, method: str, params: Mapping[str, Any], patience: Patience) -> dict[str, Any]:
        """Send a request, and wait for its result; one that is no object counts as empty.

        Raises:
            As ``begin`` and ``wait``.
        """
        return self.wait(self.begin(method, params, patience), patience)

    def wait(self, number: int, patience: Patience) -> dict[str, Any]:
        """Wait for the result of the request *number*.

        Raises:
            RequestFailed: the agent refused.
            CompanionEnded, CompanionSaysTooMuch: there will be none.
            WaitingEnded: not for longer.
        """
        while number not in self._results:
            self.listen(patience)
        message = self._results.pop(number)
        error = message.get("error")
        if error is not None:
            told = find(error, str, "message") or "an error without a message"
            detail = find(error, str, "data", "details") or find(error, str, "data", "message")
            code = find(error, int, "code") or 0
            raise RequestFailed(code, f"{told}: {detail}" if detail else told)
        result = message.get("result")
        return result if isinstance(result, dict) else {}

    def listen(self, patience: Patience) -> None:
        """Take the next message, if one comes within a moment.

        Raises:
            As ``wait``.
        """
        patience.check()
        line = self.companion.receive()
        if line is None:
            return
        patience.hear()
        for message in _parse(line):
            self._take(message, patience)

    def has_result(self) -> bool:
        """Tell whether a request was answered whose result nobody has taken."""
        return bool(self._results)

    def notify(self, method: str, params: Mapping[str, Any], patience: Patience) -> None:
        """Send a notification.

        Raises:
            As ``begin``.
        """
        self._send({"jsonrpc": "2.0", "method": method, "params": params}, patience)

    def _take(self, message: dict[str, Any], patience: Patience) -> None:
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
        self._send(answer, patience)

    def _send(self, message: Mapping[str, Any], patience: Patience) -> None:
        line = json.dumps(message).encode()
        self.companion.send(line, wait=patience.check)


def _parse(line: bytes) -> list[dict[str, Any]]:
    """Give the messages of *line*: one, none if it is log, or those of a batch (version 2)."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    found = value if isinstance(value, list) else [value]
    messages = [each for each in found if isinstance(each, dict) and "jsonrpc" in each]
    if not messages and line.strip():
        sys.stderr.write(line[:_LONGEST_LOGGED].decode(errors="replace") + "\n")
    return messages
