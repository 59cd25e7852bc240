"""The loop of uwf-react: the model calls tools until it has an answer, or a limit is reached.

At a limit of turns, tokens or seconds, or when the model repeats itself, it is asked for its answer
once more without tools; then the loop ends. Every end reports its usage and trace.
"""

import json
import time
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from uwf_git.agentkit.adapter import AdapterAnswer, AskFailed
from uwf_git.agentkit.ladder import (
    RoleAnswer,
    WantedObject,
    build_wanted_object,
    find_misfit,
    read_answer,
)
from uwf_git.agentkit.llm.messages import (
    Message,
    ModelReply,
    ModelRequest,
    ModelTool,
    ToolCall,
    ToolResult,
    ToolResults,
)
from uwf_git.agentkit.llm.model import SUBMIT, Model, ask_for_object, say_on_stderr
from uwf_git.agentkit.react.tools import Toolbox
from uwf_git.agentkit.records import tool_event
from uwf_git.agentkit.strict_schema import derive_strict, restore
from uwf_git.model.thread import add_usage

_MOST_ALIKE = 2
_MOST_BLOCKED = 3


@dataclass(slots=True)
class Repeats:
    blocked: int = 0
    _seen: dict[str, list[int]] = field(default_factory=dict)

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

    def add(self, call: ToolCall, result: str, *, changed: bool) -> None:
        if changed:
            self._seen.clear()
        self._seen.setdefault(_key(call), []).append(hash(result))


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


class LoopResult(NamedTuple):
    answer: AdapterAnswer
    messages: tuple[Message, ...]


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

    def run(self) -> LoopResult:
        try:
            answer = self._work() or self._conclude()
        except AskFailed as failure:
            known = failure.partial
            failure.partial = self._answer(self.said if known is None else known.text)
            if known is not None:
                total = add_usage(self.usage, dict(known.usage))
                failure.partial = replace(failure.partial, usage=total)
            raise
        return LoopResult(answer, self.messages)

    def answer_now(self) -> LoopResult:
        """Ask for the answer only, without tools."""
        self.limits = self.limits._replace(turns=0)
        return self.run()

    def _work(self) -> AdapterAnswer | None:
        """Let the model use its tools; return None if a limit was reached without an answer."""
        wanted = None if self.schema is None else build_wanted_object(self.schema)
        tools = (*self.toolbox.tools, *(() if wanted is None else (_submit_tool(wanted),)))
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
            is_change = self.toolbox.changes(call) and not result.is_error
            self.repeats.add(call, result.text, changed=is_change)
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


def _submit_tool(wanted: WantedObject) -> ModelTool:
    strict = derive_strict(wanted.schema)
    schema = wanted.schema if strict is None else strict.schema
    return ModelTool(SUBMIT, wanted.description, schema)
