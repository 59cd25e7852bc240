"""An agent that speaks ACP and does what a script says: the stand-in of the tests of uwf-acp.

``python acp_agent.py SCRIPT LOG``: SCRIPT is JSON: ``initialize``, ``new`` and ``load`` are the
results of these requests (or ``{"error": …}``), and ``turns`` is a list of turns, each a list of
actions: ``{"say": TEXT}``, ``{"update": {…}}``, ``{"ask": {…}}`` (a request; its answer is
logged), ``{"raw": TEXT}``, ``{"stderr": TEXT}``, ``{"result": {…}}``, ``{"error": {…}}``,
``{"spawn": SECONDS}``, ``{"exit": STATUS}``, ``{"hang": true}`` (until it is cancelled),
``{"deaf": true}`` (for ever). Everything that it reads is appended to LOG.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    script = json.loads(Path(sys.argv[1]).read_text())
    log = Path(sys.argv[2])
    note(log, {"started": os.getpid(), "cwd": os.getcwd(), "environ": dict(os.environ)})
    agent = Agent(script, log)
    for line in sys.stdin:
        agent.take(json.loads(line))


def note(log: Path, event: Any) -> None:
    with log.open("a") as file:
        file.write(json.dumps(event) + "\n")


class Agent:
    def __init__(self, script: dict[str, Any], log: Path) -> None:
        self.script, self.log = script, log
        self.turns: list[list[dict[str, Any]]] = script.get("turns", [])
        self.session = script.get("new", {}).get("sessionId", "s1")

    def take(self, message: dict[str, Any]) -> None:
        note(self.log, message)
        number, method = message.get("id"), message.get("method")
        if method == "initialize":
            told = {"protocolVersion": 1, "agentCapabilities": {}}
            self.answer(number, self.script.get("initialize", told))
        elif method == "session/new":
            self.answer(number, self.script.get("new", {"sessionId": self.session}))
        elif method in ("session/load", "session/resume"):
            self.session = message["params"]["sessionId"]
            self.update({"sessionUpdate": "agent_message_chunk", "content": text("OLD NEWS")})
            self.answer(number, self.script.get("load", {}))
            if method == "session/load":  # as gemini does
                time.sleep(0.05)
                self.update({"sessionUpdate": "agent_message_chunk", "content": text("LATE NEWS")})
        elif method == "session/prompt":
            self.act(number, self.turns.pop(0))
        elif number is not None and method is not None:
            self.answer(number, {})

    def act(self, number: Any, actions: list[dict[str, Any]]) -> None:
        for action in actions:
            ((verb, what),) = action.items()
            getattr(self, f"do_{verb}")(number, what)

    def do_say(self, _number: Any, what: str) -> None:
        self.update({"sessionUpdate": "agent_message_chunk", "content": text(what)})

    def do_update(self, _number: Any, what: dict[str, Any]) -> None:
        self.update(what)

    def do_ask(self, _number: Any, what: dict[str, Any]) -> None:
        self.send({"jsonrpc": "2.0", "id": "agent-1", **what})
        note(self.log, json.loads(sys.stdin.readline()))

    def do_raw(self, _number: Any, what: str) -> None:
        sys.stdout.write(what)
        sys.stdout.flush()

    def do_big(self, _number: Any, length: int) -> None:
        self.do_say(None, "x" * length)

    def do_stderr(self, _number: Any, what: str) -> None:
        sys.stderr.write(what)
        sys.stderr.flush()

    def do_result(self, number: Any, what: dict[str, Any]) -> None:
        self.answer(number, what)

    def do_error(self, number: Any, what: dict[str, Any]) -> None:
        self.answer(number, {"error": what})

    def do_spawn(self, _number: Any, seconds: int) -> None:
        """Leave a tool behind, in a session of its own, as opencode and gemini do."""
        tool = subprocess.Popen(["sleep", str(seconds)], start_new_session=True)
        note(self.log, {"spawned": tool.pid})

    def do_exit(self, _number: Any, status: int) -> None:
        os._exit(status)

    def do_hang(self, number: Any, _what: bool) -> None:  # noqa: FBT001 (the script's value)
        for line in sys.stdin:
            message = json.loads(line)
            note(self.log, message)
            if message.get("method") == "session/cancel":
                self.answer(number, {"stopReason": "cancelled"})
                return

    def do_deaf(self, _number: Any, _what: bool) -> None:  # noqa: FBT001 (the script's value)
        import signal  # noqa: PLC0415 (only the stubborn one needs it)

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        note(self.log, {"deaf": True})
        while True:
            signal.pause()

    def update(self, update: dict[str, Any]) -> None:
        params = {"sessionId": self.session, "update": update}
        self.send({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def answer(self, number: Any, result: dict[str, Any]) -> None:
        told = result if set(result) == {"error"} else {"result": result}
        self.send({"jsonrpc": "2.0", "id": number, **told})

    def send(self, message: dict[str, Any]) -> None:
        self.do_raw(None, json.dumps(message) + "\n")


def text(what: str) -> dict[str, str]:
    return {"type": "text", "text": what}


if __name__ == "__main__":
    main()
