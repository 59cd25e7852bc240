"""uwf-acp: any agent that speaks the Agent Client Protocol plays a role.

Owns: the life of the agent's process, its sessions, and what becomes of its stop reasons.
Knows nothing of: how messages travel (acp_client.py), what updates mean (acp_turn.py).
Always true: one process answers all questions of a turn, corrections in the same session; it is
ended, with all that it started, before this program ends. An agent that asks for a permission is
answered at once: it was started to work where nobody is there to be asked, so `allow` is the
default, `deny` refuses, and a list of kinds (`read edit`) allows these; every answer is in the
trace. A turn counts as finished only when the agent said why it stopped.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from uwf_git.agentkit.acp_client import AcpClient, Patience, RequestFailed, WaitingEnded
from uwf_git.agentkit.acp_turn import AcpTurn
from uwf_git.agentkit.adapter import Answer, Asked, FailureKind, NoAnswer
from uwf_git.agentkit.live_log import LiveLog
from uwf_git.agentkit.mcp_config import find_mcp_entry
from uwf_git.agentkit.playing import adapter_main
from uwf_git.agentkit.provider_variables import PROVIDER_VARIABLES
from uwf_git.agentkit.records import find
from uwf_git.agentkit.settings import split_args
from uwf_git.agentkit.step_files import read_submitted
from uwf_git.agents.command_line import (
    ProgramMissing,
    build_search_path,
    resolve_program,
    split_command,
)
from uwf_git.agents.companion import (
    Companion,
    CompanionEnded,
    CompanionRequest,
    CompanionSaysTooMuch,
)
from uwf_git.agents.nested_environment import allowed_environment
from uwf_git.agents.noted_signals import noted_signals
from uwf_git.agents.one_line import on_one_line
from uwf_git.errors import BadUsage

_ABOUT = """\
Play roles with an agent that speaks the Agent Client Protocol. COMMAND starts it, for
example: 'gemini --acp', 'opencode acp', 'qwen --acp', 'copilot --acp', hermes-acp,
'goose acp', 'agent acp' (Cursor), claude-agent-acp, codex-acp.
"""

_KEYS = {
    "permission": "allow (default), deny, or the kinds of tools to allow: 'read search edit'",
    "mcp": "off: do not offer the agent the tools of `uwf mcp`",
}

_PROTOCOL = 1
_AUTH_REQUIRED = -32000

# How long an agent that was told to stop may take to say so.
_CANCEL_S = 1.0
# One that has not begun to talk by then is no agent.
_HELLO_S = 120.0

_ENVIRON = (
    *PROVIDER_VARIABLES,
    "CLAUDE_*", "CODEX_*", "COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN", "QWEN_*", "OPENCODE_*",
    "HERMES_*", "CURSOR_*", "GOOSE_*", "GOOGLE_GEMINI_BASE_URL", "npm_config_*",
)  # fmt: skip

_STOPPED: dict[str, tuple[FailureKind, str]] = {
    "max_tokens": ("too-long", "stopped at its limit of tokens"),
    "max_turn_requests": ("too-long", "stopped at its limit of model calls"),
    "refusal": ("model-error", "refused to go on"),
    "cancelled": ("no-result", "was cancelled"),
}


@dataclass(slots=True)
class AcpAdapter:
    """An ``Adapter`` for any ACP agent."""

    name: str = "acp"
    takes_schema: bool = False
    resumes: bool = True
    _client: AcpClient | None = None
    _agent: dict[str, Any] = field(default_factory=dict)
    """What the agent said of itself."""

    _costs: dict[str, float] = field(default_factory=dict)
    """The sessions that this process knows, with what each has cost so far."""

    def ask(self, asked: Asked) -> Answer:
        """Let the agent work on one prompt, in the session of *asked* or in a new one.

        Raises:
            NoAnswer: it is not there, was stopped, or did not come to an end.
            BadUsage: a setting is wrong.
        """
        patience = Patience(asked.timeout_s, asked.silence_s)
        turn = AcpTurn()
        with noted_signals(patience.signals):
            try:
                return self._ask(asked, turn, patience)
            except WaitingEnded as stopped:
                self.close()
                raise _why_stopped(stopped, asked, turn) from stopped
            except RequestFailed as failure:
                kind: FailureKind = "auth" if failure.code == _AUTH_REQUIRED else "model-error"
                raise self._failure(kind, f"failed: {failure.message}", turn) from failure
            except CompanionSaysTooMuch as failure:
                self.close()
                raise self._failure("too-much-output", "said too much", turn) from failure
            except CompanionEnded as failure:
                raise self._ended(turn) from failure

    def close(self) -> None:
        """End the agent, and all that it started."""
        if self._client is not None:
            self._client.companion.close()
            self._client = None
            self._costs = {}

    def _ask(self, asked: Asked, turn: AcpTurn, patience: Patience) -> Answer:
        client = self._connect(asked, patience)
        client.on_permission = lambda request: _permit(request, asked.settings, turn)
        session = self._open_session(client, asked, patience)
        turn.session, turn.cost_before = session, self._costs[session]
        client.on_update = turn.take
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": asked.prompt}]}
        try:
            number = client.begin("session/prompt", prompt, patience)
            turn.end(client.wait(number, patience))
            while turn.stop_reason is None:
                # Version 2 only says that the prompt was accepted, and then tells of the end.
                client.listen(patience)
        except WaitingEnded:
            _cancel(client, session, turn)
            raise
        finally:
            # What a turn without an answer has cost is told with its failure, and only there.
            self._costs[session] = turn.cost or self._costs[session]
        return _checked(turn.build_answer(), turn, asked)

    def _connect(self, asked: Asked, patience: Patience) -> AcpClient:
        if self._client is not None:
            return self._client
        request = _build_request(asked)
        try:
            companion = Companion(request, on_stderr=LiveLog().add)
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or str(error)
            message = f"cannot start {request.argv[0]}: {problem.lower()}"
            raise NoAnswer("crashed", message) from error
        client = self._client = AcpClient(companion)
        hello = {
            "protocolVersion": _PROTOCOL,
            "clientCapabilities": {
                "fs": {"readTextFile": False, "writeTextFile": False},
                "terminal": False,
            },
            "clientInfo": {"name": "uwf", "title": "uwf", "version": "1"},
        }
        greeting = Patience(patience.timeout_s or _HELLO_S, None, patience.signals)
        self._agent = client.request("initialize", hello, greeting)
        return client

    def _open_session(self, client: AcpClient, asked: Asked, patience: Patience) -> str:
        place = {"cwd": os.path.abspath(asked.workdir), "mcpServers": _mcp_servers(asked)}
        if asked.session is None:
            opened = client.request("session/new", place, patience)
            session = find(opened, str, "sessionId")
            if not session:
                raise NoAnswer("bad-output", "the agent opened a session without an id")
            self._costs[session] = 0.0
        else:
            session = asked.session
            if session in self._costs:
                return session
            opened = self._load_session(client, session, place, patience)
            spent = find(dict(asked.spent), float, "costUsd")
            self._costs[session] = spent or 0.0
        _choose_model(client, session, opened, asked.settings.get("model"), patience)
        return session

    def _load_session(
        self, client: AcpClient, session: str, place: Mapping[str, Any], patience: Patience
    ) -> dict[str, Any]:
        able = self._agent.get("agentCapabilities") or self._agent.get("capabilities") or {}
        if find(able, bool, "loadSession"):
            method = "session/load"
        elif isinstance(able, dict) and "resume" in (able.get("sessionCapabilities") or {}):
            method = "session/resume"
        else:
            raise NoAnswer("no-session", "the agent cannot go on with an old session")
        # What it tells of the old turns is not this turn's.
        client.on_update = lambda _update: None
        try:
            return client.request(method, {"sessionId": session, **place}, patience)
        except RequestFailed as failure:
            told = on_one_line(failure.message)[:300]
            raise NoAnswer("no-session", f"the agent lost session {session:.60}: {told}") from None

    def _failure(self, kind: FailureKind, what: str, turn: AcpTurn) -> NoAnswer:
        hint = None
        if kind == "auth":
            methods = self._agent.get("authMethods") or []
            names = ", ".join(find(each, str, "name") or "" for each in methods)
            hint = f"log in with the agent's own program first ({names or 'see its manual'})"
        message = f"the agent {on_one_line(what)[:500]}"
        return NoAnswer(kind, message, hint=hint, partial=turn.build_answer())

    def _ended(self, turn: AcpTurn) -> NoAnswer:
        code, said = None, ""
        if self._client is not None:
            companion = self._client.companion
            code = companion.wait(_CANCEL_S)
            self.close()
            said = companion.stderr_tail.decode(errors="replace").strip().rpartition("\n")[2]
        how = "closed its output" if code is None else f"ended with exit status {code}"
        what = f"{how} before it had answered" + (f": {said}" if said else "")
        return self._failure("crashed", what, turn)


def _build_request(asked: Asked) -> CompanionRequest:
    command = asked.settings.get("command", "")
    if not command.strip():
        raise BadUsage("no agent was named", hint="for example: uwf-acp 'gemini --acp'")
    words = (*split_command(command), *split_args(asked.settings))
    path = build_search_path(asked.environ.get("PATH", os.defpath))
    try:
        program = resolve_program(words[0], path=path, workdir=asked.workdir)
    except ProgramMissing as missing:
        raise NoAnswer("missing", missing.message, hint=missing.hint) from missing
    more = (*_ENVIRON, *asked.settings.get("env", "").split())
    environment = {**allowed_environment(asked.environ, more=more), "PATH": path}
    return CompanionRequest((program, *words[1:]), environment, asked.workdir)


def _mcp_servers(asked: Asked) -> list[dict[str, Any]]:
    entry = find_mcp_entry(asked.environ, asked.settings)
    if entry is None:
        return []
    env = [{"name": name, "value": value} for name, value in entry["env"].items()]
    return [{"name": "uwf", "command": entry["command"], "args": entry["args"], "env": env}]


def _choose_model(
    client: AcpClient,
    session: str,
    opened: Mapping[str, Any],
    model: str | None,
    patience: Patience,
) -> None:
    if not model:
        return
    for option in opened.get("configOptions") or []:
        if find(option, str, "category") == "model":
            wanted = {"sessionId": session, "configId": option.get("id"), "value": model}
            client.request("session/set_config_option", wanted, patience)
            return
    if not opened.get("models"):
        raise BadUsage(
            "this agent does not take a model by its protocol",
            hint="name the model in the agent's own command or settings",
        )
    client.request("session/set_model", {"sessionId": session, "modelId": model}, patience)


def _permit(
    request: Mapping[str, Any], settings: Mapping[str, str], turn: AcpTurn
) -> dict[str, Any]:
    """Answer a request for a permission, as the settings say."""
    wanted = settings.get("permission") or "allow"
    kind = find(request, str, "toolCall", "kind") or "other"
    is_allowed = wanted == "allow" or kind in wanted.replace(",", " ").split()
    front = "allow" if is_allowed else "reject"
    options = [each for each in request.get("options") or [] if find(each, str, "optionId")]
    # Once, rather than always: nothing should outlast this turn.
    fitting = sorted(
        (each for each in options if (find(each, str, "kind") or "").startswith(front)),
        key=lambda each: find(each, str, "kind") != f"{front}_once",
    )
    title = find(request, str, "toolCall", "title") or kind
    turn.note({"type": "permission", "name": title, "kind": kind, "allowed": is_allowed})
    if not fitting:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": fitting[0]["optionId"]}}


def _cancel(client: AcpClient, session: str, turn: AcpTurn) -> None:
    """Tell the agent to stop, and listen to its last words for a moment."""
    client.on_permission = lambda _request: {"outcome": {"outcome": "cancelled"}}
    patience = Patience(_CANCEL_S)
    with suppress(WaitingEnded, CompanionEnded, CompanionSaysTooMuch, RequestFailed):
        client.notify("session/cancel", {"sessionId": session}, patience)
        while turn.stop_reason is None and not client.has_result():
            client.listen(patience)


def _why_stopped(stopped: WaitingEnded, asked: Asked, turn: AcpTurn) -> NoAnswer:
    told = {
        "timed-out": f"acp took longer than {asked.timeout_s or _HELLO_S:g} s, and was stopped",
        "silent": f"acp said nothing for {asked.silence_s or 0:g} s, and was stopped",
        "interrupted": "acp was interrupted",
    }
    return NoAnswer(stopped.why, told[stopped.why], partial=turn.build_answer())


def _checked(answer: Answer, turn: AcpTurn, asked: Asked) -> Answer:
    """Give *answer* if the agent came to its end."""
    kind, what = _STOPPED.get(turn.stop_reason or "", (None, ""))
    if kind is not None:
        raise NoAnswer(kind, f"the agent {what}", partial=answer)
    if not answer.text.strip() and read_submitted(asked.step_dir) is None:
        raise NoAnswer("no-result", "the agent ended its turn without a word", partial=answer)
    return answer


def main() -> int:
    """Be the program uwf-acp."""
    adapter = AcpAdapter()
    try:
        return adapter_main(adapter, about=_ABOUT, keys=_KEYS, word="command")()
    finally:
        adapter.close()


if __name__ == "__main__":
    sys.exit(main())
