"""A model plays a role: by one call (uwf-llm), or with tools (uwf-react)."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

from uwf_git.agentkit import turn
from uwf_git.agentkit.ladder import (
    RoleAnswer,
    WantedObject,
    add_guide,
    build_wanted_object,
    find_misfit,
    read_answer,
)
from uwf_git.agentkit.llm.endpoint import ENDPOINT_KEYS, Endpoint, read_endpoint, read_whole
from uwf_git.agentkit.llm.http_client import split_url
from uwf_git.agentkit.llm.messages import (
    Conversations,
    Message,
    ModelReply,
    ModelRequest,
    ModelTool,
    ToolCall,
    ToolResult,
    ToolResults,
    derive_strict,
    read_lone_object,
    restore,
)
from uwf_git.agentkit.llm.model import SUBMIT, Model, ask_for_object, say_on_stderr
from uwf_git.agentkit.llm.tools import (
    CHANGING,
    Surroundings,
    Toolbox,
    build_toolbox,
    open_work_folder,
)
from uwf_git.agentkit.programs.playing import adapter_main, list_deciding_files
from uwf_git.agentkit.records import tool_event
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.agents.nested import allowed_environment
from uwf_git.errors import BadUsage
from uwf_git.model.text import plain_key
from uwf_git.model.thread import add_usage

# uwf-llm: one call of a model plays a role: a prompt in, an answer out, no tools.

_LLM_ABOUT = """\
Play roles with one call of a model: no tools, no files, the prompt in and an answer out.
Any endpoint with the API of OpenAI (chat completions) or of Anthropic will do.
The key comes from the environment alone: OPENAI_API_KEY, ANTHROPIC_API_KEY, or the
variable that key-env names; an endpoint that wants none gets none.
"""


class LlmAdapter:
    name = "llm"
    takes_schema = True
    resumes = True

    def __init__(self) -> None:
        self._conversations = Conversations("llm")
        self._models: dict[Endpoint, Model] = {}

    def ask(self, question: AdapterQuestion) -> AdapterAnswer:
        endpoint = read_endpoint(question.settings, question.environ, section="uwf.llm")
        model = self._models.setdefault(endpoint, Model(endpoint, question.environ))
        session, messages = self._conversations.begin(question.prompt, question.session)
        say_on_stderr(f"asking {endpoint.model} at {split_url(endpoint.url).netloc}")
        request, timeout_s = ModelRequest(messages), question.timeout_s
        event: dict[str, Any] = {"type": "turn"}
        found = None
        if question.schema is None:
            reply = model.ask(request, timeout_s=timeout_s)
            usage = {**reply.usage, "turns": 1}
        else:
            wanted = build_wanted_object(question.schema)
            got = ask_for_object(model, request, wanted, timeout_s=timeout_s)
            if got.way != "plain":
                turn.extend_prompt(question.step_dir, question.prompt, add_guide(question.prompt))
            found = read_answer(got.value, question.schema)
            reply, usage, event["way"] = got.reply, dict(got.usage), got.way
        self._conversations.keep(session, (*messages, reply.said))
        return AdapterAnswer(
            text=found.content or _drop_object(reply.said.text) if found else reply.said.text,
            structured=found and found.meta,
            session=session,
            usage=usage,
            trace=({**event, "model": reply.model, "usage": dict(reply.usage)},),
        )


def _drop_object(text: str) -> str:
    return text if read_lone_object(text) is None else ""


# These settings are about a program; conversations end with this process.
_WITHOUT = ("permission", "args", "program", "silence", "resume")

_LLM_KEYS = {**ENDPOINT_KEYS, "timeout": "the most seconds for one answer (600 unless set)"}

llm_main = adapter_main(LlmAdapter(), about=_LLM_ABOUT, keys=_LLM_KEYS, without=(*_WITHOUT, "env"))


# uwf-react: a model with tools plays a role.
#
# A correction is answered without tools. File tools reach the work directory only; the shell, which
# has no such limit, can be removed.
#
# The model calls tools until it has an answer. The last turn that its limits of turns and tokens
# allow, and the turn after it has repeated itself, is without tools; then the loop ends. Every end
# reports its usage and trace.

_MOST_ALIKE = 2
_MOST_BLOCKED = 3


@dataclass(slots=True)
class Repeats:
    blocked: int = 0
    _seen: dict[str, list[int]] = field(default_factory=dict)
    _changes: set[tuple[str, int]] = field(default_factory=set)

    @property
    def is_stuck(self) -> bool:
        """Whether the model repeats blocked calls, or submits what is not accepted."""
        return self.blocked >= _MOST_BLOCKED

    def blocks(self, call: ToolCall) -> bool:
        """Return whether *call* gave the same result each time, and count it."""
        given = self._seen.get(_key(call), [])
        if len(given) < _MOST_ALIKE or len(set(given[-_MOST_ALIKE:])) > 1:
            return False
        self.blocked += 1
        return True

    def add(self, call: ToolCall, result: str, *, may_change: bool) -> None:
        """Note *result*; if the call *may_change* something, begin anew, but once for a result."""
        key, given = _key(call), hash(result)
        # Two calls in turns, each as ever, are a circle too.
        if may_change and (key, given) not in self._changes:
            self._changes.add((key, given))
            self._seen.clear()
        self._seen.setdefault(key, []).append(given)


def _key(call: ToolCall) -> str:
    return f"{call.name} {json.dumps(call.arguments, sort_keys=True)}"


_SHORT = 400
_NOTE = "[… {:,} characters left out to make room; call the tool again if you need them …]"


def make_room(messages: tuple[Message, ...]) -> tuple[Message, ...] | None:
    """Return *messages* without the long results of older calls; None if there are none."""
    turns = [number for number, each in enumerate(messages) if isinstance(each, ToolResults)]
    kept = set(turns[-2:])
    shorter = tuple(
        _shorten(each) if isinstance(each, ToolResults) and number not in kept else each
        for number, each in enumerate(messages)
    )
    return None if shorter == messages else shorter


def _shorten(message: ToolResults) -> ToolResults:
    results = tuple(
        each if len(each.text) <= _SHORT else each._replace(text=_NOTE.format(len(each.text)))
        for each in message.results
    )
    return message._replace(results=results)


_AGAIN = "You have made this very call before, and it gave the same each time. Do something else."
_NO_MORE = "No more tools: give your answer now, from what you know."
_REACHED = "the limit of {0} is reached (allow more: --{0} or uwf.react.{0})"
_LONGEST_SHOWN = 120


class LoopLimits(NamedTuple):
    turns: int
    """With tools, before the one without; -1: not even that one."""

    tokens: int
    deadline: float
    """On the monotonic clock."""


@dataclass(slots=True)
class Loop:
    """One question that a model answers with tools."""

    model: Model
    toolbox: Toolbox
    limits: LoopLimits
    system: str
    schema: dict[str, Any] | bool | None
    messages: tuple[Message, ...]
    usage: dict[str, Any] = field(default_factory=dict)
    trace: list[dict[str, Any]] = field(default_factory=list)
    repeats: Repeats = field(default_factory=Repeats)
    said: str = ""
    last_tokens: int = 0
    is_short: bool = False
    """Whether the limit of tokens took the tools away."""

    def run(self) -> AdapterAnswer:
        try:
            return self._work() or self._conclude()
        except AskFailed as failure:
            known = failure.partial or AdapterAnswer(text=self.said)
            self.usage = add_usage(self.usage, dict(known.usage))
            failure.partial = self._answer(known.text)
            raise

    def _work(self) -> AdapterAnswer | None:
        """Let the model use its tools; return None if it has to answer without them."""
        wanted = None if self.schema is None else build_wanted_object(self.schema)
        tools = self.toolbox.tools
        if wanted is not None:
            strict = derive_strict(wanted.schema)
            schema = wanted.schema if strict is None else strict.schema
            tools = (*tools, ModelTool(SUBMIT, wanted.description, schema))
        for _ in range(self.limits.turns):
            if self.repeats.is_stuck:
                return None
            # One more turn, and then that of the answer, which costs as much.
            if self._left_tokens() < 2 * self.last_tokens:
                self.is_short = True
                return None
            reply = self._ask(ModelRequest(self.messages, self.system, tools))
            if not reply.said.calls:
                value = wanted and restore(read_lone_object(reply.said.text), wanted.schema)
                return self._read(reply, value)
            results: list[ToolResult] = []
            has_failed = False
            # Last, since it tells of what the others do; not accepted if one of them fails.
            for call in sorted(reply.said.calls, key=lambda each: each.name == SUBMIT):
                result, answer = self._take(call, wanted, has_failed=has_failed)
                has_failed |= result.is_error and result.text != _AGAIN and call.name != SUBMIT
                results.append(result)
                if answer is not None:
                    return answer
            self.messages = (*self.messages, ToolResults(tuple(results)))
        return None

    def _conclude(self) -> AdapterAnswer:
        if self.limits.turns < 0 or self._left_tokens() <= 0:
            name = "turns" if self.limits.turns < 0 else "tokens"
            raise AskFailed("no-result", _REACHED.format(name))
        last = self.messages[-1]
        if isinstance(last, ToolResults):
            self.messages = (*self.messages[:-1], last._replace(note=last.note or _NO_MORE))
        request = ModelRequest(self.messages, self.system)
        if self.schema is None:
            return self._answer(self._ask(request).said.text)
        got = ask_for_object(
            self.model, request, build_wanted_object(self.schema), timeout_s=self._left_s()
        )
        self._account(got.reply, got.usage)
        return self._read(got.reply, got.value)

    def _ask(self, request: ModelRequest) -> ModelReply:
        try:
            reply = self.model.ask(request, timeout_s=self._left_s())
        except AskFailed as failure:
            shorter = make_room(self.messages)
            # With a partial answer, the answer was too long, not the conversation.
            if failure.kind != "too-long" or failure.partial is not None or shorter is None:
                raise
            message = f"{failure.message}; older results left out"
            self.trace.append({"type": "warning", "message": message})
            self.messages = shorter
            request = request._replace(messages=shorter)
            reply = self.model.ask(request, timeout_s=self._left_s())
        self._account(reply, {**reply.usage, "turns": 1})
        return reply

    def _take(
        self, call: ToolCall, wanted: WantedObject | None, *, has_failed: bool
    ) -> tuple[ToolResult, AdapterAnswer | None]:
        """Run one call; return its result, and the answer if the call submitted one that fits."""
        say_on_stderr(f"{call.name} {str(call.arguments)[:_LONGEST_SHOWN]}")
        started = time.monotonic()
        answer = None
        if wanted is not None and call.name == SUBMIT:
            result, answer = self._submit(call, wanted, has_failed=has_failed)
        elif self.repeats.blocks(call):
            result = ToolResult(call.id, _AGAIN, is_error=True)
        else:
            result = self.toolbox.run(call)
            may_change = call.name in CHANGING and not result.is_error
            self.repeats.add(call, result.text, may_change=may_change)
        took_ms = round((time.monotonic() - started) * 1000)
        event = tool_event(call.name, call.arguments, result.text, ok=not result.is_error)
        self.trace.append({**event, "durationMs": took_ms})
        return result, None if answer is None else self._structured(answer)

    def _submit(
        self, call: ToolCall, wanted: WantedObject, *, has_failed: bool
    ) -> tuple[ToolResult, RoleAnswer | None]:
        value = None if call.arguments is None else restore(call.arguments, wanted.schema)
        schema = self.schema if self.schema is not None else True
        found = read_answer(value, schema)
        needed = "an object with `content` and `meta` is needed"
        problem = needed if found is None else find_misfit(found.meta, schema)
        self.repeats.blocked += bool(problem)
        if problem := problem or ("see the results of your other calls" if has_failed else ""):
            return ToolResult(call.id, f"not accepted: {problem}", is_error=True), None
        return ToolResult(call.id, "accepted"), found

    def _read(self, reply: ModelReply, value: dict[str, Any] | None) -> AdapterAnswer:
        found = None if self.schema is None else read_answer(value, self.schema)
        return self._answer(reply.said.text) if found is None else self._structured(found)

    def _structured(self, found: RoleAnswer) -> AdapterAnswer:
        return replace(self._answer(found.content or self.said), structured=found.meta)

    def _answer(self, text: str) -> AdapterAnswer:
        return AdapterAnswer(text=text, usage=self.usage, trace=tuple(self.trace))

    def _account(self, reply: ModelReply, usage: Any) -> None:
        self.usage = add_usage(self.usage, dict(usage))
        self.messages = (*self.messages, reply.said)
        self.said = _drop_object(reply.said.text) or self.said
        self.last_tokens = _count_tokens(reply.usage)
        self.trace.append({"type": "turn", "model": reply.model, "usage": dict(reply.usage)})
        if reply.said.text and reply.said.calls:
            self.trace.append({"type": "message", "text": reply.said.text})

    def _left_tokens(self) -> int:
        return self.limits.tokens - _count_tokens(self.usage)

    def _left_s(self) -> float:
        left_s = self.limits.deadline - time.monotonic()
        if left_s <= 0:
            raise AskFailed("timed-out", "the time limit was reached without an answer")
        return left_s


def _count_tokens(usage: Mapping[str, Any]) -> int:
    return int(usage.get("inputTokens", 0) + usage.get("outputTokens", 0))


# The adapter of the loop.

_REACT_ABOUT = """\
Play roles with a model that has tools: read_file, write_file, patch_file, list_files,
shell and fetch_thread. The file tools stay in the work directory, also through symbolic
links, and write neither git directories nor what decides which commands you trust.

The shell is no sandbox. It starts in the work directory with a time limit (120 s unless
the model asks for another, at most 1800) and without your keys, but it can read, write
and reach all that you can. `shell = false` removes it.

Settings that react does not have come from those of uwf-llm: model, url, api, key-env.
"""

_REACT_KEYS = {
    **ENDPOINT_KEYS,
    "shell": "false takes the shell away",
    "timeout": "the most seconds for all turns together (3600 unless set)",
    "turns": "the most turns of the model, the last without tools (50 unless set)",
    "tokens": "after so many tokens of all turns no turn begins (2000000 unless set)",
}

_SYSTEM = """\
You work with tools in the directory {root}. Paths are relative to it, and the file tools reach \
nothing outside of it{shell}. Look before you change something, and check what you have changed. \
Say only what you have seen: a file that you did not write is not there, and a test that you did \
not run has not passed.

When your work is done, call submit_result, once: `content` is the text of your answer, and `meta` \
are the fields that the prompt asks for in front matter; then there is no front matter."""

_SYSTEM_WITHOUT_FIELDS = "When your work is done, answer in words, without calling a tool."


@dataclass(slots=True)
class ReactAdapter:
    name: str = "react"
    takes_schema: bool = True
    resumes: bool = True
    _conversations: Conversations = field(default_factory=lambda: Conversations("react"))
    _models: dict[Endpoint, Model] = field(default_factory=dict)
    _is_short: bool = False
    _deadline: float = 0.0

    def ask(self, question: AdapterQuestion) -> AdapterAnswer:
        """Run the loop; in a conversation that goes on, only ask for the answer again."""
        settings, environ = _with_llm(question), question.environ
        endpoint = read_endpoint(settings, environ, section="uwf.react")
        model = self._models.setdefault(endpoint, Model(endpoint, environ))
        session, messages = self._conversations.begin(question.prompt, question.session)
        if question.session is not None and self._is_short:
            raise AskFailed("no-result", _REACHED.format("tokens"))
        if question.session is None:
            self._deadline = time.monotonic() + (question.timeout_s or 3_600.0)
        loop = _build_loop(question, settings, model, messages, self._deadline)
        turn.extend_prompt(
            question.step_dir, question.prompt, f"{question.prompt}\n{loop.system}\n"
        )
        answer = loop.run()
        self._is_short = loop.is_short
        self._conversations.keep(session, loop.messages)
        return replace(answer, session=session)


def _with_llm(question: AdapterQuestion) -> dict[str, str]:
    """Return the settings, with those of uwf-llm for the ones that are missing."""
    role = question.environ.get("UWF_ROLE", "")
    llm = turn.load_settings("llm", role, environ=question.environ, words={})
    shared = {"model", *map(plain_key, ENDPOINT_KEYS)}
    return {**{key: value for key, value in llm.items() if key in shared}, **question.settings}


def _build_loop(
    question: AdapterQuestion,
    settings: Mapping[str, str],
    model: Model,
    messages: tuple[Message, ...],
    deadline: float,
) -> Loop:
    environ, has_shell = question.environ, _read_flag(settings, "shell")
    folder = open_work_folder(question.workdir, kept=list_deciding_files(environ))
    seen = allowed_environment(environ, more=question.settings.get("env", "").split())
    seen.pop(model.endpoint.key_name, None)

    def around() -> Surroundings:
        return Surroundings(seen, question.step_dir, max(1.0, deadline - time.monotonic()))

    thread = environ.get("UWF_THREAD_ID") if environ.get("UWF_REPO") else None
    toolbox = build_toolbox(
        folder,
        thread=cache(lambda: turn.load_context(environ, (thread,))) if thread else None,
        around=around if has_shell else None,
    )
    turns = _read_number(settings, "turns", 50) - 1
    tokens = _read_number(settings, "tokens", 2_000_000)
    if question.session is not None:
        # A correction is about the fields; the model must not start to work again.
        turns = min(0, turns - question.spent.get("turns", 0))
        tokens -= _count_tokens(question.spent)
    limits = LoopLimits(turns, tokens, deadline)
    shell = "; the shell starts there, too" if has_shell else "; there is no shell"
    system = _SYSTEM.format(root=folder.root, shell=shell)
    if question.schema is None:
        system = system.partition("When your work is done")[0] + _SYSTEM_WITHOUT_FIELDS
    return Loop(model, toolbox, limits, system, question.schema, messages)


def _read_flag(settings: Mapping[str, str], key: str) -> bool:
    text = settings.get(key, "").strip().lower()
    if text not in {"", "true", "yes", "on", "1", "false", "no", "off", "0"}:
        raise BadUsage(f"uwf.react.{key} is {text!r:.100}", hint="it is true or false")
    return text not in {"false", "no", "off", "0"}


def _read_number(settings: Mapping[str, str], key: str, default: int) -> int:
    text = settings.get(key, "").strip()
    return read_whole(text, f"uwf.react.{key}") if text else default


react_main = adapter_main(ReactAdapter(), about=_REACT_ABOUT, keys=_REACT_KEYS, without=_WITHOUT)
