"""uwf-acp: any agent that speaks the Agent Client Protocol plays a role.

One agent process answers all questions of a turn, corrections in the same session; it ends, with
all its children, before uwf-acp does. A request for a permission is answered at once from the
setting: `allow` (the default, since there is no person to ask), `deny`, or the kinds of tools to
allow (`read edit`); each answer is in the trace. A turn is finished only with a stop reason.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from uwf_git.agentkit.adapter import AdapterAnswer, AdapterQuestion, AskFailed, FailureKind
from uwf_git.agentkit.programs.acp_client import (
    AcpClient,
    AcpTurn,
    RequestFailed,
    WaitingEnded,
    WaitLimits,
)
from uwf_git.agentkit.programs.playing import (
    PROVIDER_VARIABLES,
    adapter_main,
    find_mcp_entry,
    is_below,
    list_deciding_files,
)
from uwf_git.agentkit.records import find
from uwf_git.agentkit.running import LiveLog
from uwf_git.agentkit.settings import split_args
from uwf_git.agentkit.turn import read_submitted
from uwf_git.agents.command_line import (
    ProgramMissing,
    build_search_path,
    resolve_program,
    split_command,
)
from uwf_git.agents.group import deferred_signals
from uwf_git.agents.nested import StdioEnded, StdioProcess, StdioRequest, allowed_environment
from uwf_git.agents.reply import on_one_line
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

# How long a cancelled agent may take to report that it stopped.
_CANCEL_S = 1.0
# gemini answers session/load first, and replays the earlier turns after it: they have ended
# when it says nothing for the one time, and are not waited for longer than the other.
_REPLAY_QUIET_S = 0.4
_REPLAY_S = 5.0
# The limit of the first request, if no timeout is set.
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
    name: str = "acp"
    takes_schema: bool = False
    resumes: bool = True
    _client: AcpClient | None = None
    _agent: dict[str, Any] = field(default_factory=dict)
    """The agent's reply to ``initialize``."""

    _costs: dict[str, float] = field(default_factory=dict)
    """What each session of this process has cost so far, in US dollars."""

    _log: LiveLog = field(default_factory=LiveLog)

    def ask(self, question: AdapterQuestion) -> AdapterAnswer:
        """Send one prompt, in the session of *question* or in a new one."""
        limits = WaitLimits(question.timeout_s, question.silence_s)
        turn = AcpTurn(say=self._log.tell)
        with deferred_signals(limits.signals):
            try:
                return self._ask(question, turn, limits)
            except WaitingEnded as stopped:
                self.close()
                raise _why_stopped(stopped, question, turn) from stopped
            except RequestFailed as failure:
                kind: FailureKind = "auth" if failure.code == _AUTH_REQUIRED else "model-error"
                raise self._failure(kind, f"failed: {failure.message}", turn) from failure
            except StdioEnded as failure:
                if failure.is_too_long:
                    self.close()
                    raise self._failure("too-much-output", "said too much", turn) from failure
                raise self._ended(turn) from failure
            finally:
                self._log.end()

    def close(self) -> None:
        if self._client is not None:
            self._client.companion.close()
            self._client = None
            self._costs = {}

    def _ask(self, question: AdapterQuestion, turn: AcpTurn, limits: WaitLimits) -> AdapterAnswer:
        client = self._connect(question, limits)
        client.on_permission = lambda request: _permit(request, question, turn)
        session = self._open_session(client, question, limits)
        turn.session, turn.cost_before = session, self._costs[session]
        client.on_update = turn.take
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": question.prompt}]}
        try:
            turn.end(client.request("session/prompt", prompt, limits))
            while turn.stop_reason is None:
                # Version 2 answers when the prompt is accepted, and reports the end later.
                client.listen(limits)
        except WaitingEnded:
            _cancel(client, session, turn)
            raise
        finally:
            # The cost of a failed turn is reported with its failure, and not again.
            self._costs[session] = turn.cost or self._costs[session]
        return _check_end(turn.build_answer(), turn, question)

    def _connect(self, question: AdapterQuestion, limits: WaitLimits) -> AcpClient:
        if self._client is not None:
            return self._client
        request = _build_request(question)
        try:
            companion = StdioProcess(request, on_stderr=self._log.add)
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or str(error)
            message = f"cannot start {request.argv[0]}: {problem.lower()}"
            raise AskFailed("crashed", message) from error
        client = self._client = AcpClient(companion)
        hello = {
            "protocolVersion": _PROTOCOL,
            "clientCapabilities": {
                "fs": {"readTextFile": False, "writeTextFile": False},
                "terminal": False,
            },
            "clientInfo": {"name": "uwf", "title": "uwf", "version": "1"},
        }
        greeting = WaitLimits(limits.timeout_s or _HELLO_S, None, limits.signals)
        self._agent = client.request("initialize", hello, greeting)
        return client

    def _open_session(
        self, client: AcpClient, question: AdapterQuestion, limits: WaitLimits
    ) -> str:
        place = {"cwd": os.path.abspath(question.workdir), "mcpServers": _mcp_servers(question)}
        if question.session is None:
            opened = client.request("session/new", place, limits)
            session = find(opened, str, "sessionId")
            if not session:
                raise AskFailed("bad-output", "the agent opened a session without an id")
            self._costs[session] = 0.0
        else:
            session = question.session
            if session in self._costs:
                return session
            opened = self._load_session(client, session, place, limits)
            spent = find(dict(question.spent), float, "costUsd")
            self._costs[session] = spent or 0.0
        _choose_model(client, session, opened, question.settings.get("model"), limits)
        return session

    def _load_session(
        self, client: AcpClient, session: str, place: Mapping[str, Any], limits: WaitLimits
    ) -> dict[str, Any]:
        able = self._agent.get("agentCapabilities") or self._agent.get("capabilities") or {}
        if find(able, bool, "loadSession"):
            method = "session/load"
        elif isinstance(able, dict) and "resume" in (able.get("sessionCapabilities") or {}):
            method = "session/resume"
        else:
            raise AskFailed("no-session", "the agent cannot resume a session")
        # Ignore the replayed updates of earlier turns.
        client.on_update = lambda _update: None
        try:
            opened = client.request(method, {"sessionId": session, **place}, limits)
        except RequestFailed as failure:
            told = on_one_line(failure.message)[:300]
            raise AskFailed("no-session", f"the agent lost session {session:.60}: {told}") from None
        if method == "session/load":
            _pass_by_replay(client, limits)
        return opened

    def _failure(self, kind: FailureKind, what: str, turn: AcpTurn) -> AskFailed:
        hint = None
        if kind == "auth":
            methods = self._agent.get("authMethods") or []
            names = ", ".join(find(each, str, "name") or "" for each in methods)
            hint = f"log in with the agent's own program first ({names or 'see its manual'})"
        message = f"the agent {on_one_line(what)[:500]}"
        return AskFailed(kind, message, hint=hint, partial=turn.build_answer())

    def _ended(self, turn: AcpTurn) -> AskFailed:
        code, said = None, ""
        if self._client is not None:
            companion = self._client.companion
            code = companion.wait(_CANCEL_S)
            self.close()
            said = companion.stderr_tail.decode(errors="replace").strip().rpartition("\n")[2]
        how = "closed its output" if code is None else f"ended with exit status {code}"
        what = f"{how} before it answered" + (f": {said}" if said else "")
        return self._failure("crashed", what, turn)


def _pass_by_replay(client: AcpClient, limits: WaitLimits) -> None:
    quiet = WaitLimits(_REPLAY_S, _REPLAY_QUIET_S, limits.signals)
    try:
        while True:
            client.listen(quiet)
    except WaitingEnded as ended:
        if ended.why == "interrupted":
            raise


def _build_request(question: AdapterQuestion) -> StdioRequest:
    command = question.settings.get("command", "")
    if not command.strip():
        raise BadUsage("no agent was named", hint="for example: uwf-acp 'gemini --acp'")
    words = (*split_command(command), *split_args(question.settings))
    path = build_search_path(question.environ.get("PATH", os.defpath))
    try:
        program = resolve_program(words[0], path=path, workdir=question.workdir)
    except ProgramMissing as missing:
        raise AskFailed("missing", missing.message, hint=missing.hint) from missing
    more = (*_ENVIRON, *question.settings.get("env", "").split())
    environment = {**allowed_environment(question.environ, more=more), "PATH": path}
    return StdioRequest((program, *words[1:]), environment, question.workdir)


def _mcp_servers(question: AdapterQuestion) -> list[dict[str, Any]]:
    entry = find_mcp_entry(question)
    if entry is None:
        return []
    env = [{"name": name, "value": value} for name, value in entry["env"].items()]
    return [{"name": "uwf", "command": entry["command"], "args": entry["args"], "env": env}]


def _choose_model(
    client: AcpClient,
    session: str,
    opened: Mapping[str, Any],
    model: str | None,
    limits: WaitLimits,
) -> None:
    if not model:
        return
    for option in opened.get("configOptions") or []:
        if find(option, str, "category") == "model":
            wanted = {"sessionId": session, "configId": option.get("id"), "value": model}
            client.request("session/set_config_option", wanted, limits)
            return
    if not opened.get("models"):
        raise BadUsage(
            "this agent does not take a model by its protocol",
            hint="name the model in the agent's own command or settings",
        )
    client.request("session/set_model", {"sessionId": session, "modelId": model}, limits)


_HARMLESS_KINDS = frozenset({"read", "search", "think", "fetch"})


def _permit(request: Mapping[str, Any], question: AdapterQuestion, turn: AcpTurn) -> dict[str, Any]:
    """Answer a request for a permission as the setting says; the store is never changed."""
    wanted = question.settings.get("permission") or "allow"
    kind = find(request, str, "toolCall", "kind") or "other"
    is_allowed = wanted == "allow" or kind in wanted.replace(",", " ").split()
    if kind not in _HARMLESS_KINDS:
        kept = list_deciding_files(question.environ)
        paths = (os.path.join(question.workdir, each) for each in _find_paths(request))
        is_allowed = is_allowed and not any(is_below(path, kept) for path in paths)
    front = "allow" if is_allowed else "reject"
    options = [each for each in request.get("options") or [] if find(each, str, "optionId")]
    # Prefer "once" to "always", so that nothing outlasts this turn.
    fitting = sorted(
        (each for each in options if (find(each, str, "kind") or "").startswith(front)),
        key=lambda each: find(each, str, "kind") != f"{front}_once",
    )
    title = find(request, str, "toolCall", "title") or kind
    turn.note({"type": "permission", "name": title, "kind": kind, "allowed": is_allowed})
    if not fitting:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": fitting[0]["optionId"]}}


def _find_paths(request: Mapping[str, Any]) -> list[str]:
    call = find(request, dict, "toolCall") or {}
    told = [*(find(call, list, "locations") or []), *(find(call, list, "content") or [])]
    paths = [find(each, str, "path") for each in told]
    return [path for path in paths if path and "\0" not in path]


def _cancel(client: AcpClient, session: str, turn: AcpTurn) -> None:
    """Cancel the turn, and take the updates that still come for a moment."""
    client.on_permission = lambda _request: {"outcome": {"outcome": "cancelled"}}
    limits = WaitLimits(_CANCEL_S)
    with suppress(WaitingEnded, StdioEnded, RequestFailed):
        client.notify("session/cancel", {"sessionId": session}, limits)
        while turn.stop_reason is None and not client.has_result():
            client.listen(limits)


def _why_stopped(stopped: WaitingEnded, question: AdapterQuestion, turn: AcpTurn) -> AskFailed:
    told = {
        "timed-out": f"acp took longer than {question.timeout_s or _HELLO_S:g} s, and was stopped",
        "silent": f"acp said nothing for {question.silence_s or 0:g} s, and was stopped",
        "interrupted": "acp was stopped from outside",
    }
    return AskFailed(stopped.why, told[stopped.why], partial=turn.build_answer())


def _check_end(answer: AdapterAnswer, turn: AcpTurn, question: AdapterQuestion) -> AdapterAnswer:
    kind, what = _STOPPED.get(turn.stop_reason or "", (None, ""))
    if kind is not None:
        raise AskFailed(kind, f"the agent {what}", partial=answer)
    if not answer.text.strip() and read_submitted(question.step_dir) is None:
        raise AskFailed("no-result", "the agent ended its turn without a word", partial=answer)
    return answer


def main() -> int:
    adapter = AcpAdapter()
    try:
        return adapter_main(adapter, about=_ABOUT, keys=_KEYS, word="command")()
    finally:
        adapter.close()
