"""The loop: a model calls tools until it has an answer, or may not go on.

Owns: the turns, their limits, and what is recorded of them.
Knows nothing of: endpoints, what a tool does, roles beyond the schema of their fields.
Always true: it ends: after so many turns, tokens or seconds, or when the model goes in circles,
it is asked for its answer once, without tools, and that is the end; whatever ends it, what it has
cost and done is told.
"""

import time
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from uwf_git.agentkit.adapter import Answer, NoAnswer
from uwf_git.agentkit.fitting import find_misfit
from uwf_git.agentkit.model_call import Model, say_on_stderr
from uwf_git.agentkit.model_words import (
    Call,
    Message,
    ModelReply,
    ModelRequest,
    Outcome,
    Outcomes,
    Tool,
)
from uwf_git.agentkit.react.repeats import Repeats
from uwf_git.agentkit.react.room import make_room
from uwf_git.agentkit.react.toolbox import Toolbox
from uwf_git.agentkit.role_object import RoleAnswer, read_answer, wanted_of
from uwf_git.agentkit.strict_schema import derive_strict, restore
from uwf_git.agentkit.structured import SUBMIT, Wanted, ask_for_object
from uwf_git.model.usage import add_usage

_AGAIN = "You have made this very call before, and it gave the same each time. Do something else."
_NO_MORE = "No more tools: give your answer now, from what you know."
_LONGEST_SHOWN = 120


class Limits(NamedTuple):
    """How long it may go on."""

    turns: int
    tokens: int
    deadline: float
    """On the monotonic clock."""


class Ended(NamedTuple):
    """How it ended."""

    answer: Answer
    messages: tuple[Message, ...]


@dataclass(slots=True)
class Loop:
    """One question, worked on with tools."""

    model: Model
    toolbox: Toolbox
    limits: Limits
    system: str
    schema: dict[str, Any] | bool | None
    messages: tuple[Message, ...]
    usage: dict[str, Any] = field(default_factory=dict)
    trace: list[dict[str, Any]] = field(default_factory=list)
    repeats: Repeats = field(default_factory=Repeats)
    said: str = ""
    """The model's last words."""

    def run(self) -> Ended:
        """Go on until there is an answer.

        Raises:
            NoAnswer: there is none; ``partial`` tells what was said, spent and done.
        """
        try:
            answer = self._work() or self._conclude()
        except NoAnswer as failure:
            known = failure.partial
            failure.partial = self._answer(self.said if known is None else known.text)
            if known is not None:
                total = add_usage(self.usage, dict(known.usage))
                failure.partial = replace(failure.partial, usage=total)
            raise
        return Ended(answer, self.messages)

    def answer_now(self) -> Ended:
        """Ask for the answer alone, without tools.

        Raises:
            NoAnswer: as ``run``.
        """
        self.limits = self.limits._replace(turns=0)
        return self.run()

    def _work(self) -> Answer | None:
        """Let the model use its tools; None if it has no answer when it may not go on."""
        wanted = None if self.schema is None else wanted_of(self.schema)
        tools = (*self.toolbox.tools, *(() if wanted is None else (_submit_tool(wanted),)))
        for _ in range(self.limits.turns):
            if self._has_spent() or self.repeats.is_stuck:
                break
            reply = self._ask(ModelRequest(self.messages, self.system, tools))
            self.messages = (*self.messages, reply.said)
            if not reply.said.calls:
                return self._answer(reply.said.text)
            outcomes = []
            for call in reply.said.calls:
                outcome, answer = self._take(call, wanted)
                outcomes.append(outcome)
                if answer is not None:
                    return answer
            self.messages = (*self.messages, Outcomes(tuple(outcomes)))
        return None

    def _conclude(self) -> Answer:
        last = self.messages[-1]
        if isinstance(last, Outcomes):
            self.messages = (*self.messages[:-1], last._replace(note=last.note or _NO_MORE))
        request = ModelRequest(self.messages, self.system)
        if self.schema is None:
            reply = self._ask(request)
            self.messages = (*self.messages, reply.said)
            return self._answer(reply.said.text)
        got = ask_for_object(self.model, request, wanted_of(self.schema), timeout_s=self._left_s())
        self._account(got.reply, got.usage)
        self.messages = (*self.messages, got.reply.said)
        found = read_answer(got.value, self.schema)
        return self._answer(got.reply.said.text) if found is None else self._structured(found)

    def _ask(self, request: ModelRequest) -> ModelReply:
        try:
            reply = self.model.ask(request, timeout_s=self._left_s())
        except NoAnswer as failure:
            shorter = make_room(self.messages)
            # With something said, it was the answer that grew too long.
            if failure.kind != "too-long" or failure.partial is not None or shorter is None:
                raise
            self._note({"type": "warning", "message": f"{failure.message}; older results left out"})
            self.messages = shorter
            reply = self.model.ask(
                request._replace(messages=self.messages), timeout_s=self._left_s()
            )
        self._account(reply, {**reply.usage, "turns": 1})
        return reply

    def _take(self, call: Call, wanted: Wanted | None) -> tuple[Outcome, Answer | None]:
        """Run one call; with the answer if it was handed in, and fits."""
        say_on_stderr(f"{call.name} {str(call.arguments)[:_LONGEST_SHOWN]}")
        started = time.monotonic()
        answer = None
        if wanted is not None and call.name == SUBMIT:
            outcome, answer = self._submit(call, wanted)
        elif self.repeats.blocks(call):
            outcome = Outcome(call.id, _AGAIN, is_error=True)
        else:
            outcome = self.toolbox.run(call)
            is_change = self.toolbox.changes(call) and not outcome.is_error
            self.repeats.add(call, outcome.text, changed=is_change)
        self._note(
            {
                "type": "tool",
                "name": call.name,
                "input": call.arguments,
                "output": outcome.text,
                "ok": not outcome.is_error,
                "durationMs": round((time.monotonic() - started) * 1000),
            }
        )
        return outcome, None if answer is None else self._structured(answer)

    def _submit(self, call: Call, wanted: Wanted) -> tuple[Outcome, RoleAnswer | None]:
        value = None if call.arguments is None else restore(call.arguments, wanted.schema)
        schema = self.schema if self.schema is not None else True
        found = read_answer(value, schema)
        if found is None:
            problem = "an object with `content` and `meta` is needed"
        else:
            problem = find_misfit(found.meta, schema)
        if problem:
            return Outcome(call.id, f"not accepted: {problem}", is_error=True), None
        return Outcome(call.id, "accepted"), found

    def _structured(self, found: RoleAnswer) -> Answer:
        return replace(self._answer(found.content or self.said), structured=found.meta)

    def _answer(self, text: str) -> Answer:
        return Answer(text=text, usage=self.usage, trace=tuple(self.trace))

    def _account(self, reply: ModelReply, usage: Any) -> None:
        self.usage = add_usage(self.usage, dict(usage))
        self.said = reply.said.text or self.said
        self._note({"type": "turn", "model": reply.model, "usage": dict(reply.usage)})
        if reply.said.text and reply.said.calls:
            self._note({"type": "message", "text": reply.said.text})

    def _note(self, event: dict[str, Any]) -> None:
        self.trace.append(event)

    def _has_spent(self) -> bool:
        spent = self.usage.get("inputTokens", 0) + self.usage.get("outputTokens", 0)
        return bool(spent >= self.limits.tokens)

    def _left_s(self) -> float:
        left_s = self.limits.deadline - time.monotonic()
        if left_s <= 0:
            raise NoAnswer("timed-out", "the time is over, and there is no answer yet")
        return left_s


def _submit_tool(wanted: Wanted) -> Tool:
    strict = derive_strict(wanted.schema)
    schema = wanted.schema if strict is None else strict.schema
    return Tool(SUBMIT, wanted.description, schema)
