"""uwf-acp: any agent that speaks the Agent Client Protocol plays a role.

One agent process answers all questions of a turn, corrections in the same session; it ends, with
all its children, before uwf-acp does. A request for a permission is answered at once from the
setting: `allow` (the default, since there is no person to ask), `deny`, or the kinds of tools to
allow (`read edit`); each answer is in the trace. Any other request is answered with an error, so
that the agent never waits for us. A turn is finished only with a stop reason.

Lines that are not messages are log, not failures. The answer's text is the agent's last message;
texts between tool calls go to the trace. Unknown or malformed updates are ignored.
Source: agentclientprotocol.com, version 1; JSON-RPC 2.0.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from uwf_git.agentkit.programs import playing
from uwf_git.agentkit.programs.command import build_environment, classify_words, find_program
from uwf_git.agentkit.records import find, read_usage, tool_event
from uwf_git.agentkit.running import LiveLog
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, AskFailed, FailureKind, split_args
from uwf_git.agents.command_line import on_one_line, split_command
from uwf_git.agents.group import deferred_signals
from uwf_git.agents.nested import StdioEnded, StdioProcess
from uwf_git.errors import BadUsage

_METHOD_NOT_FOUND = -32601
_CANCELLED = {"outcome": {"outcome": "cancelled"}}


class RequestFailed(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class WaitingEnded(Exception):
    """A limit was reached, or a signal arrived."""

    def __init__(self, why: Literal["timed-out", "silent", "interrupted"]) -> None:
        super().__init__(why)
        self.why = why


@dataclass(slots=True)
class WaitLimits:
    timeout_s: float | None = None
    silence_s: float | None = None
    signals: list[int] = field(default_factory=list)
    """Signals that ask this process to end; the signal handler adds them."""

    _began: float = field(default_factory=time.monotonic)
    heard: float = field(default_factory=time.monotonic)

    def check(self) -> None:
        """Raise WaitingEnded if a limit was reached, or a signal arrived."""
        now = time.monotonic()
        if self.signals:
            raise WaitingEnded("interrupted")
        if self.timeout_s is not None and now - self._began >= self.timeout_s:
            raise WaitingEnded("timed-out")
        if self.silence_s is not None and now - self.heard >= self.silence_s:
            raise WaitingEnded("silent")


@dataclass(slots=True)
class AcpClient:
    companion: StdioProcess
    on_update: Callable[[dict[str, Any]], None] = lambda _update: None
    on_permission: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda _asked: _CANCELLED
    """Answers ``session/request_permission``."""

    _last_id: int = 0
    _results: dict[int, dict[str, Any]] = field(default_factory=dict)

    def request(self, method: str, params: Mapping[str, Any], limits: WaitLimits) -> dict[str, Any]:
        self._last_id = number = self._last_id + 1
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params}, limits)
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
        limits.heard = time.monotonic()
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
        sys.stderr.write(line[:2_000].decode(errors="replace") + "\n")
    return messages


_MOST_EVENTS = 5_000


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
        if kind in {"agent_message_chunk", "agent_message"}:
            self._take_message(update, is_whole=kind == "agent_message")
        elif kind in {"tool_call", "tool_call_update"}:
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

    def note(self, event: dict[str, Any]) -> None:
        if len(self._trace) < _MOST_EVENTS:
            self._trace.append(event)

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
            self.note(self._tools[name])
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


_ABOUT = """\
Play roles with an agent that speaks the Agent Client Protocol. COMMAND starts it, for
example: 'gemini --acp', 'opencode acp', 'qwen --acp', 'copilot --acp', hermes-acp,
'goose acp', 'agent acp' (Cursor), claude-agent-acp, codex-acp.
"""

_KEYS = {
    "permission": "allow (default), deny, or the kinds of tools to allow: 'read search edit'",
    "mcp": "off: do not offer the agent the tools of `uwf mcp`",
}

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
    *playing.PROVIDER_VARIABLES,
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
                kind: FailureKind = "auth"
                if failure.code != _AUTH_REQUIRED:
                    kind = classify_words(f"code {failure.code}: {failure.message}")
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
        return _check_end(turn.build_answer(), turn)

    def _connect(self, question: AdapterQuestion, limits: WaitLimits) -> AcpClient:
        if self._client is not None:
            return self._client
        argv, environment = _build_call(question)
        try:
            companion = StdioProcess(argv, environment, question.workdir, on_stderr=self._log.add)
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or str(error)
            message = f"cannot start {argv[0]}: {problem.lower()}"
            raise AskFailed("crashed", message) from error
        client = self._client = AcpClient(companion)
        hello = {
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": {"readTextFile": False, "writeTextFile": False},
                "terminal": False,
            },
            "clientInfo": {"name": "uwf", "title": "uwf", "version": "1"},
        }
        greeting = WaitLimits(limits.timeout_s or _HELLO_S, None, limits.signals)
        self._agent = client.request("initialize", hello, greeting)
        limits.heard = greeting.heard
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
        agent = self._agent
        able = find(agent, dict, "agentCapabilities") or find(agent, dict, "capabilities")
        if find(able, bool, "loadSession"):
            method = "session/load"
        elif "resume" in (find(able, dict, "sessionCapabilities") or {}):
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
            methods = find(self._agent, list, "authMethods") or []
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
    limits.heard = quiet.heard


def _build_call(question: AdapterQuestion) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command, and its environment."""
    command = question.settings.get("command", "")
    if not command.strip():
        raise BadUsage("no agent was named", hint="for example: uwf-acp 'gemini --acp'")
    words = (*split_command(command), *split_args(question.settings))
    environment = build_environment(question, _ENVIRON)
    program = find_program(words[:1], question, environment["PATH"], install="")
    return (program, *words[1:]), environment


def _mcp_servers(question: AdapterQuestion) -> list[dict[str, Any]]:
    entry = playing.find_mcp_entry(question)
    if entry is None:
        return []
    env = [{"name": name, "value": value} for name, value in entry["env"].items()]
    return [{"name": "uwf", "command": entry["command"], "args": entry["args"], "env": env}]


def _choose_model(
    client: AcpClient, session: str, opened: dict[str, Any], model: str | None, limits: WaitLimits
) -> None:
    if not model:
        return
    for option in find(opened, list, "configOptions") or []:
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
        kept = playing.list_deciding_files(question.environ)
        paths = (os.path.join(question.workdir, each) for each in _find_paths(request))
        is_allowed = is_allowed and not any(playing.is_below(path, kept) for path in paths)
    front = "allow" if is_allowed else "reject"
    told = find(request, list, "options") or []
    options = [each for each in told if find(each, str, "optionId")]
    # Prefer "once" to "always", so that nothing outlasts this turn.
    fitting = sorted(
        (each for each in options if (find(each, str, "kind") or "").startswith(front)),
        key=lambda each: find(each, str, "kind") != f"{front}_once",
    )
    title = find(request, str, "toolCall", "title") or kind
    turn.note({"type": "permission", "name": title, "kind": kind, "allowed": is_allowed})
    if not fitting:
        return _CANCELLED
    return {"outcome": {"outcome": "selected", "optionId": fitting[0]["optionId"]}}


def _find_paths(request: Mapping[str, Any]) -> list[str]:
    call = find(request, dict, "toolCall") or {}
    told = [*(find(call, list, "locations") or []), *(find(call, list, "content") or [])]
    paths = [find(each, str, "path") for each in told]
    return [path for path in paths if path and "\0" not in path]


def _cancel(client: AcpClient, session: str, turn: AcpTurn) -> None:
    """Cancel the turn, and take the updates that still come for a moment."""
    client.on_permission = lambda _request: _CANCELLED
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


def _check_end(answer: AdapterAnswer, turn: AcpTurn) -> AdapterAnswer:
    kind, what = _STOPPED.get(turn.stop_reason or "", (None, ""))
    if kind is not None:
        raise AskFailed(kind, f"the agent {what}", partial=answer)
    if not answer.text.strip():
        raise AskFailed("no-result", "the agent ended its turn without a word", partial=answer)
    return answer


def main() -> int:
    adapter = AcpAdapter()
    play = playing.adapter_main(
        adapter, about=_ABOUT, keys=_KEYS, word="command", without={"program"}
    )
    try:
        return play()
    finally:
        adapter.close()
