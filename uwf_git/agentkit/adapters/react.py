"""uwf-react: a model with tools plays a role.

A correction is answered without tools. File tools reach the work directory only; the shell, which
has no such limit, can be removed.

The model calls tools until it has an answer, or a limit is reached. At a limit of turns, tokens or
seconds, or when the model repeats itself, it is asked for its answer once more without tools; then
the loop ends. Every end reports its usage and trace.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

from uwf_git.agentkit.ladder import (
    RoleAnswer,
    WantedObject,
    build_wanted_object,
    find_misfit,
    read_answer,
)
from uwf_git.agentkit.llm.endpoint import ENDPOINT_KEYS, Endpoint, read_endpoint, read_whole
from uwf_git.agentkit.llm.messages import (
    Conversations,
    Message,
    ModelReply,
    ModelRequest,
    ModelTool,
    ToolCall,
    ToolResult,
    ToolResults,
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
from uwf_git.agentkit.strict_schema import derive_strict, restore
from uwf_git.agentkit.turn import (
    AdapterAnswer,
    AdapterQuestion,
    AskFailed,
    extend_prompt,
    load_context,
    load_settings,
    plain_key,
)
from uwf_git.agents.nested import allowed_environment
from uwf_git.errors import BadUsage
from uwf_git.model.thread import add_usage

_MOST_ALIKE = 2
_MOST_BLOCKED = 3


@dataclass(slots=True)
class Repeats:
    blocked: int = 0
    _seen: dict[str, list[int]] = field(default_factory=dict)
    _changes: set[tuple[str, int]] = field(default_factory=set)

    @property
    def is_stuck(self) -> bool:
        """Whether the model repeats blocked calls."""
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


_KEPT_TURNS = 2
_SHORT = 400
_NOTE = "[… {:,} characters left out to make room; call the tool again if you need them …]"


def make_room(messages: tuple[Message, ...]) -> tuple[Message, ...] | None:
    """Return *messages* without the long results of older calls; None if there are none."""
    turns = [number for number, each in enumerate(messages) if isinstance(each, ToolResults)]
    kept = set(turns[-_KEPT_TURNS:])
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
_LONGEST_SHOWN = 120


class LoopLimits(NamedTuple):
    turns: int
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

    def run(self) -> AdapterAnswer:
        try:
            return self._work() or self._conclude()
        except AskFailed as failure:
            known = failure.partial or AdapterAnswer(text=self.said)
            self.usage = add_usage(self.usage, dict(known.usage))
            failure.partial = self._answer(known.text)
            raise

    def _work(self) -> AdapterAnswer | None:
        """Let the model use its tools; return None if a limit was reached without an answer."""
        wanted = None if self.schema is None else build_wanted_object(self.schema)
        tools = self.toolbox.tools
        if wanted is not None:
            strict = derive_strict(wanted.schema)
            schema = wanted.schema if strict is None else strict.schema
            tools = (*tools, ModelTool(SUBMIT, wanted.description, schema))
        for _ in range(self.limits.turns):
            spent = self.usage.get("inputTokens", 0) + self.usage.get("outputTokens", 0)
            if spent >= self.limits.tokens or self.repeats.is_stuck:
                break
            reply = self._ask(ModelRequest(self.messages, self.system, tools))
            self.messages = (*self.messages, reply.said)
            if not reply.said.calls:
                return self._answer(reply.said.text)
            results = []
            for call in reply.said.calls:
                result, answer = self._take(call, wanted)
                results.append(result)
                if answer is not None:
                    return answer
            self.messages = (*self.messages, ToolResults(tuple(results)))
        return None

    def _conclude(self) -> AdapterAnswer:
        last = self.messages[-1]
        if isinstance(last, ToolResults):
            self.messages = (*self.messages[:-1], last._replace(note=last.note or _NO_MORE))
        request = ModelRequest(self.messages, self.system)
        if self.schema is None:
            reply = self._ask(request)
            self.messages = (*self.messages, reply.said)
            return self._answer(reply.said.text)
        got = ask_for_object(
            self.model, request, build_wanted_object(self.schema), timeout_s=self._left_s()
        )
        self._account(got.reply, got.usage)
        self.messages = (*self.messages, got.reply.said)
        found = read_answer(got.value, self.schema)
        return self._answer(got.reply.said.text) if found is None else self._structured(found)

    def _ask(self, request: ModelRequest) -> ModelReply:
        try:
            reply = self.model.ask(request, timeout_s=self._left_s())
        except AskFailed as failure:
            shorter = make_room(self.messages)
            # With a partial answer, the answer was too long, not the conversation.
            if failure.kind != "too-long" or failure.partial is not None or shorter is None:
                raise
            self.trace.append(
                {"type": "warning", "message": f"{failure.message}; older results left out"}
            )
            self.messages = shorter
            reply = self.model.ask(
                request._replace(messages=self.messages), timeout_s=self._left_s()
            )
        self._account(reply, {**reply.usage, "turns": 1})
        return reply

    def _take(
        self, call: ToolCall, wanted: WantedObject | None
    ) -> tuple[ToolResult, AdapterAnswer | None]:
        """Run one call; return its result, and the answer if the call submitted one that fits."""
        say_on_stderr(f"{call.name} {str(call.arguments)[:_LONGEST_SHOWN]}")
        started = time.monotonic()
        answer = None
        if wanted is not None and call.name == SUBMIT:
            result, answer = self._submit(call, wanted)
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

    def _submit(self, call: ToolCall, wanted: WantedObject) -> tuple[ToolResult, RoleAnswer | None]:
        value = None if call.arguments is None else restore(call.arguments, wanted.schema)
        schema = self.schema if self.schema is not None else True
        found = read_answer(value, schema)
        problem = "an object with `content` and `meta` is needed"
        if found is not None:
            problem = find_misfit(found.meta, schema)
        if problem:
            return ToolResult(call.id, f"not accepted: {problem}", is_error=True), None
        return ToolResult(call.id, "accepted"), found

    def _structured(self, found: RoleAnswer) -> AdapterAnswer:
        return replace(self._answer(found.content or self.said), structured=found.meta)

    def _answer(self, text: str) -> AdapterAnswer:
        return AdapterAnswer(text=text, usage=self.usage, trace=tuple(self.trace))

    def _account(self, reply: ModelReply, usage: Any) -> None:
        self.usage = add_usage(self.usage, dict(usage))
        self.said = reply.said.text or self.said
        self.trace.append({"type": "turn", "model": reply.model, "usage": dict(reply.usage)})
        if reply.said.text and reply.said.calls:
            self.trace.append({"type": "message", "text": reply.said.text})

    def _left_s(self) -> float:
        left_s = self.limits.deadline - time.monotonic()
        if left_s <= 0:
            raise AskFailed("timed-out", "the time limit was reached without an answer")
        return left_s


# The adapter.

_ABOUT = """\
Play roles with a model that has tools: read_file, write_file, patch_file, list_files,
shell and fetch_thread. The file tools stay in the work directory, also through symbolic
links, and write neither git directories nor what decides which commands you trust.

The shell is no sandbox. It starts in the work directory with a time limit (120 s unless
the model asks for another, at most 1800) and without your keys, but it can read, write
and reach all that you can. `shell = false` removes it.

Settings that react does not have come from those of uwf-llm: model, url, api, key-env.
"""

_KEYS = {
    **ENDPOINT_KEYS,
    "shell": "false takes the shell away",
    "timeout": "the most seconds for all turns together (3600 unless set)",
    "turns": "the most turns of the model (50 unless set)",
    "tokens": "the most tokens of all turns together (2000000 unless set)",
}

_TURNS = 50
_TOKENS = 2_000_000
_TIMEOUT_S = 3_600.0

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

    def ask(self, question: AdapterQuestion) -> AdapterAnswer:
        """Run the loop; in a conversation that goes on, only ask for the answer again."""
        settings = _with_llm(question)
        environ = question.environ
        endpoint = read_endpoint(settings, environ, section="uwf.react")
        model = self._models.setdefault(endpoint, Model(endpoint, environ))
        session, messages = self._conversations.begin(question.prompt, question.session)
        loop = _build_loop(question, settings, model, messages)
        extend_prompt(question.step_dir, question.prompt, f"{question.prompt}\n{loop.system}\n")
        answer = loop.run()
        self._conversations.keep(session, loop.messages)
        return replace(answer, session=session)


def _with_llm(question: AdapterQuestion) -> dict[str, str]:
    """Return the settings, with those of uwf-llm for the ones that are missing."""
    role = question.environ.get("UWF_ROLE", "")
    llm = load_settings("llm", role, environ=question.environ, words={})
    shared = {"model", *map(plain_key, ENDPOINT_KEYS)}
    return {**{key: value for key, value in llm.items() if key in shared}, **question.settings}


def _build_loop(
    question: AdapterQuestion,
    settings: Mapping[str, str],
    model: Model,
    messages: tuple[Message, ...],
) -> Loop:
    environ = question.environ
    folder = open_work_folder(question.workdir, kept=list_deciding_files(environ))
    has_shell = _read_flag(settings, "shell")
    deadline = time.monotonic() + (question.timeout_s or _TIMEOUT_S)
    seen = allowed_environment(environ, more=question.settings.get("env", "").split())
    seen.pop(model.endpoint.key_name, None)

    def around() -> Surroundings:
        return Surroundings(seen, question.step_dir, max(1.0, deadline - time.monotonic()))

    thread = environ.get("UWF_THREAD_ID") if environ.get("UWF_REPO") else None
    toolbox = build_toolbox(
        folder,
        thread=cache(lambda: load_context(environ, (thread,))) if thread else None,
        around=around if has_shell else None,
    )
    turns = _read_number(settings, "turns", _TURNS)
    # A correction is about the fields; the model must not start to work again.
    turns = turns if question.session is None else 0
    limits = LoopLimits(turns, _read_number(settings, "tokens", _TOKENS), deadline)
    shell = "; the shell starts there, too" if has_shell else "; there is no shell"
    system = _SYSTEM.format(root=folder.root, shell=shell)
    if question.schema is None:
        system = system.partition("When your work is done")[0] + _SYSTEM_WITHOUT_FIELDS
    return Loop(model, toolbox, limits, system, question.schema, messages)


def _read_flag(settings: Mapping[str, str], key: str) -> bool:
    text = settings.get(key, "").strip().lower()
    if text in {"", "true", "yes", "on", "1"}:
        return True
    if text in {"false", "no", "off", "0"}:
        return False
    raise BadUsage(f"uwf.react.{key} is {text!r:.100}", hint="it is true or false")


def _read_number(settings: Mapping[str, str], key: str, default: int) -> int:
    text = settings.get(key, "").strip()
    return read_whole(text, f"uwf.react.{key}") if text else default


# These settings are about a program; conversations end with this process.
_WITHOUT = ("permission", "args", "program", "silence", "resume")

main = adapter_main(ReactAdapter(), about=_ABOUT, keys=_KEYS, without=_WITHOUT)
