"""The extraction ladder: from a question to a meta that fits, by the cheapest way.

Owns: the order of the rungs, and when the next one is taken.
Knows nothing of: any program, any model. What it asks is the adapter's to answer.
Always true: no value is invented: a meta was said by the agent, or by an extractor that was
configured for it and saw the agent's own words; it fits the role's schema; what the first run
said stays the content; usage is the sum over everything that was asked.
Source: seed 003 (three phases); seed 000 section 1.5.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from uwf_git.agentkit.adapter import Adapter, Answer, Asked, NoAnswer
from uwf_git.agentkit.context import AgentContext, ExtractContext, build_extract_context
from uwf_git.agentkit.correction import build_correction
from uwf_git.agentkit.extract import NoMeta, extract_meta
from uwf_git.agentkit.fitting import find_misfit
from uwf_git.agentkit.result import AgentResult
from uwf_git.errors import UwfError
from uwf_git.model.usage import add_usage

MOST_CORRECTIONS = 2

Extractor = Callable[[ExtractContext], Answer]
"""Asks a model for the meta of an answer; what it gives is in ``structured``."""

Submitted = Callable[[], Mapping[str, Any] | None]
"""Gives what the agent handed in by a tool (``submit_result``): ``meta``, perhaps ``content``."""


@dataclass(frozen=True, slots=True)
class Rungs:
    """The rungs that are not the adapter's own."""

    submitted: Submitted = lambda: None
    find_extractor: Callable[[], Extractor | None] = lambda: None
    """Gives the extractor, if there is one; called only when nothing else is left."""

    most_corrections: int = MOST_CORRECTIONS
    note: Callable[[Mapping[str, Any]], None] = lambda _event: None
    """Takes the events of the trace, as they come."""


def climb(adapter: Adapter, context: AgentContext, asked: Asked, rungs: Rungs) -> AgentResult:
    """Ask *adapter*, and find a meta that fits the role's schema in what it answers.

    In this order: what the agent handed in by a tool; the program's own structured output; the
    fields in its words (extract.py); the same conversation, with what is wrong, at most
    ``most_corrections`` times; the extractor, if there is one. The result's ``rung`` tells which:
    ``submitted``, ``native``, ``front-matter``, ``block``, ``json``, each with ``-corrected``
    after it if the agent had to be asked again, or ``extractor``.

    Raises:
        NoAnswer: the first question had none.
        NoMeta: nothing fits; its ``text`` is the agent's first answer.
    """
    schema = context.current_role.output_schema
    asked = replace(asked, schema=schema if adapter.takes_schema else None)
    climbing = _Climb(adapter, context, rungs)
    first = climbing.ask_first(asked)
    found = climbing.look(first, first=first)
    if isinstance(found, str):
        found = climbing.correct(asked, first, found)
    if isinstance(found, str) and first.text.strip():
        found = climbing.extract(first, found)
    if isinstance(found, str):
        raise NoMeta(found, first.text, usage=climbing.usage)
    rungs.note({"type": "rung", "rung": found.rung})
    return found


@dataclass(slots=True)
class _Climb:
    """One climb, and what it costs. A rung gives a result, or what is wrong."""

    adapter: Adapter
    context: AgentContext
    rungs: Rungs
    usage: dict[str, Any] = field(default_factory=dict)

    def ask_first(self, asked: Asked) -> Answer:
        """Ask in the old conversation if there is one, else in a new one."""
        try:
            answer = self._ask(asked)
        except NoAnswer as failure:
            if asked.session is None or failure.kind != "no-session":
                raise
            answer = self._ask(replace(asked, session=None, spent={}))
        if asked.session not in (None, answer.session):
            # No harm is done, since it was told everything.
            message = "the old conversation was not there any more; a new one was begun"
            self.rungs.note({"type": "warning", "message": message})
        return answer

    def _ask(self, asked: Asked) -> Answer:
        try:
            answer = self.adapter.ask(asked)
        except NoAnswer as failure:
            if failure.partial is not None:
                self._account(failure.partial)
            self.rungs.note({"type": "error", "kind": failure.kind, "message": failure.message})
            raise
        self._account(answer)
        return answer

    def _account(self, answer: Answer) -> None:
        self.usage = add_usage(self.usage, dict(answer.usage))
        for event in answer.trace:
            self.rungs.note(event)

    def look(self, answer: Answer, *, first: Answer) -> AgentResult | str:
        """Look for a meta that fits in one answer."""
        schema = self.context.current_role.output_schema
        suffix = "" if answer is first else "-corrected"
        problems: list[str] = []
        handed_in = self.rungs.submitted()
        if handed_in is not None:
            problems.append(find_misfit(handed_in.get("meta"), schema))
            if not problems[-1]:
                content = handed_in.get("content")
                said = content if isinstance(content, str) and content else first.text
                return self._result(handed_in.get("meta"), said, "submitted" + suffix, first)
        if answer.structured is not None:
            problems.append(find_misfit(answer.structured, schema))
            if not problems[-1]:
                return self._result(answer.structured, first.text, "native" + suffix, first)
        try:
            extracted = extract_meta(answer.text, schema)
        except NoMeta as error:
            problems.append(error.problem)
            return problems[0]
        problems.append(find_misfit(extracted.meta, schema))
        if problems[-1]:
            return problems[0]
        said = extracted.content if answer is first else first.text
        return self._result(extracted.meta, said, extracted.rung + suffix, first)

    def _result(self, meta: Any, content: str, rung: str, first: Answer) -> AgentResult:
        usage = self.usage or None
        return AgentResult(meta, content, usage=usage, session=first.session, rung=rung)

    def correct(self, asked: Asked, first: Answer, problem: str) -> AgentResult | str:
        """Go on with the conversation, and say what is wrong, until it is right."""
        spent = dict(asked.spent) if first.session == asked.session else {}
        for _ in range(self.rungs.most_corrections):
            if not self.adapter.resumes or first.session is None:
                break
            again = replace(
                asked,
                prompt=build_correction(problem, self.context.current_role),
                session=first.session,
                spent=add_usage(spent, self.usage),
            )
            self.rungs.note({"type": "correction", "problem": problem})
            try:
                answer = self._ask(again)
            except NoAnswer as failure:
                return f"{problem}; asked again: {failure.message}"
            if answer.session != first.session:
                # Whoever silently begins anew knows nothing of the work, and would make it up.
                return f"{problem}; asked again, it had forgotten the conversation"
            found = self.look(answer, first=first)
            if not isinstance(found, str):
                return found
            problem = found
        return problem

    def extract(self, first: Answer, problem: str) -> AgentResult | str:
        """Let the configured model, if there is one, read the agent's words."""
        try:
            extractor = self.rungs.find_extractor()
            if extractor is None:
                return problem
            answer = extractor(build_extract_context(self.context, first.text))
        except UwfError as failure:
            # A wrong setting of the extractor must not lose what the agent has said.
            if isinstance(failure, NoAnswer) and failure.partial is not None:
                self._account(failure.partial)
            return f"{problem}; the extractor: {failure.message}"
        self._account(answer)
        misfit = find_misfit(answer.structured, self.context.current_role.output_schema)
        if misfit:
            return f"{problem}; the extractor's fields: {misfit}"
        return self._result(answer.structured, first.text, "extractor", first)
