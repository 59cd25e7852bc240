"""The extraction ladder: from a question to a meta that fits, by the cheapest way.

A meta comes from the agent, or from a configured extractor that read the agent's text; it fits the
role's schema. The content is that of the first answer; the usage is the sum of all questions.
Source: seed 003 (three phases); seed 000 section 1.5.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from uwf_git.agentkit.context import AgentContext, ExtractContext, Role, build_extract_context
from uwf_git.agentkit.extraction.adapter import Adapter, AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.agentkit.extraction.extract import NoMeta, extract_meta
from uwf_git.agentkit.extraction.role_object import find_misfit
from uwf_git.agentkit.result import AgentResult
from uwf_git.agents.reply import on_one_line
from uwf_git.engine.prompt import build_answer_format
from uwf_git.errors import UwfError
from uwf_git.model.thread import add_usage

MOST_CORRECTIONS = 2

Extractor = Callable[[ExtractContext], AdapterAnswer]
"""Asks a model for the meta of an answer; it is in ``structured``."""


@dataclass(frozen=True, slots=True)
class Fallbacks:
    """The sources of a meta besides the adapter."""

    reported: Callable[[], tuple[Any, str] | None] = lambda: None
    """Returns what the agent left in the role's output file, with "" or why that is no JSON."""

    submitted: Callable[[], Mapping[str, Any] | None] = lambda: None
    """Returns what the agent submitted by the tool ``submit_result``: ``meta``, and ``content``."""

    find_extractor: Callable[[], Extractor | None] = lambda: None
    """Returns the extractor, if there is one; called last."""

    most_corrections: int = MOST_CORRECTIONS
    note: Callable[[Mapping[str, Any]], None] = lambda _event: None


def extract_with_fallbacks(
    adapter: Adapter, context: AgentContext, question: AdapterQuestion, rungs: Fallbacks
) -> AgentResult:
    """Ask *adapter*, and find a meta that fits the role's schema in its answer.

    In this order: what the agent left in the role's output file; what it submitted by a tool; the
    program's own structured output; the fields in its text (extract.py); a correction in the same
    conversation, at most ``most_corrections`` times; the extractor, if there is one. The result's
    ``rung`` names the source: ``file``, ``submitted``, ``native``, ``front-matter``, ``block``,
    ``json``, each followed by ``-corrected`` if the agent was asked again, or ``extractor``.

    Raises:
        AskFailed: the first question failed.
        NoMeta: nothing fits; its ``text`` is the agent's first answer.
    """
    schema = context.current_role.output_schema
    question = replace(question, schema=schema if adapter.takes_schema else None)
    climbing = _Climb(adapter, context, rungs)
    try:
        first = climbing.ask_first(question)
    except AskFailed as failure:
        # It may have said nothing, and left its report.
        if failure.kind != "no-result" or rungs.reported() is None:
            raise
        first = failure.partial or AdapterAnswer(text="")
    found = climbing.look(first, first=first)
    if isinstance(found, str):
        found = climbing.correct(question, first, found)
    if isinstance(found, str) and first.text.strip():
        found = climbing.extract(first, found)
    if isinstance(found, str):
        raise NoMeta(found, first.text, usage=climbing.usage)
    rungs.note({"type": "rung", "rung": found.rung})
    return found


@dataclass(slots=True)
class _Climb:
    """One extraction, and its usage. Each rung returns a result, or the problem as a text."""

    adapter: Adapter
    context: AgentContext
    rungs: Fallbacks
    usage: dict[str, Any] = field(default_factory=dict)

    def ask_first(self, question: AdapterQuestion) -> AdapterAnswer:
        """Ask in the earlier conversation; in a new one if it is lost or there is none."""
        try:
            answer = self._ask(question)
        except AskFailed as failure:
            if question.session is None or failure.kind != "no-session":
                raise
            answer = self._ask(replace(question, session=None, spent={}))
        if question.session not in (None, answer.session):
            # Harmless, since the prompt is whole in every visit.
            message = "the earlier conversation no longer exists; a new one was started"
            self.rungs.note({"type": "warning", "message": message})
        return answer

    def _ask(self, question: AdapterQuestion) -> AdapterAnswer:
        try:
            answer = self.adapter.ask(question)
        except AskFailed as failure:
            if failure.partial is not None:
                self._account(failure.partial)
            self.rungs.note({"type": "error", "kind": failure.kind, "message": failure.message})
            raise
        self._account(answer)
        return answer

    def _account(self, answer: AdapterAnswer) -> None:
        self.usage = add_usage(self.usage, dict(answer.usage))
        for event in answer.trace:
            self.rungs.note(event)

    def look(self, answer: AdapterAnswer, *, first: AdapterAnswer) -> AgentResult | str:
        schema = self.context.current_role.output_schema
        suffix = "" if answer is first else "-corrected"
        problems: list[str] = []
        left = self.rungs.reported()
        if left is not None:
            meta, problem = left
            problems.append(problem or find_misfit(meta, schema))
            if not problems[-1]:
                return self._result(meta, first.text, "file" + suffix, first)
            problems[-1] = f"{self.context.current_role.output_file}: {problems[-1]}"
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

    def _result(self, meta: Any, content: str, rung: str, first: AdapterAnswer) -> AgentResult:
        usage = self.usage or None
        return AgentResult(meta, content, usage=usage, session=first.session, rung=rung)

    def correct(
        self, question: AdapterQuestion, first: AdapterAnswer, problem: str
    ) -> AgentResult | str:
        """Ask again in the same conversation, with the problem, until the fields fit."""
        spent = dict(question.spent) if first.session == question.session else {}
        for _ in range(self.rungs.most_corrections):
            if not self.adapter.resumes or first.session is None:
                break
            again = replace(
                question,
                prompt=build_correction(problem, self.context.current_role),
                session=first.session,
                spent=add_usage(spent, self.usage),
            )
            self.rungs.note({"type": "correction", "problem": problem})
            try:
                answer = self._ask(again)
            except AskFailed as failure:
                return f"{problem}; asked again: {failure.message}"
            if answer.session != first.session:
                # A new conversation knows nothing of the work; its fields would be made up.
                return f"{problem}; asked again, the agent had lost the conversation"
            found = self.look(answer, first=first)
            if not isinstance(found, str):
                return found
            problem = found
        return problem

    def extract(self, first: AdapterAnswer, problem: str) -> AgentResult | str:
        """Let the configured model, if there is one, read the agent's text."""
        try:
            extractor = self.rungs.find_extractor()
            if extractor is None:
                return problem
            answer = extractor(build_extract_context(self.context, first.text))
        except UwfError as failure:
            # A wrong setting of the extractor must not lose the agent's answer.
            if isinstance(failure, AskFailed) and failure.partial is not None:
                self._account(failure.partial)
            return f"{problem}; the extractor: {failure.message}"
        self._account(answer)
        misfit = find_misfit(answer.structured, self.context.current_role.output_schema)
        if misfit:
            return f"{problem}; the extractor's fields: {misfit}"
        return self._result(answer.structured, first.text, "extractor", first)


def describe_failure(failure: AskFailed | NoMeta) -> dict[str, Any]:
    """Return what the engine records about a failure besides its message."""
    if isinstance(failure, NoMeta):
        return {"kind": failure.code, "usage": dict(failure.usage)}
    usage = {} if failure.partial is None else dict(failure.partial.usage)
    reset = {name: at for name, at in failure.facts.items() if name == "resetAt"}
    return {"kind": failure.kind, "usage": usage, **reset}


_LONGEST_PROBLEM = 1_000


def build_correction(problem: str, role: Role) -> str:
    """Return the prompt that names the *problem* and repeats how to answer."""
    problem = on_one_line(problem)[:_LONGEST_PROBLEM].rstrip(".")
    return (
        "Your work is done and kept; only the fields of your answer could not be read: "
        f"{problem}.\n\n"
        "Do not work on, and call no more tools. Answer once more with the fields, from what you "
        "know already; do not make up a value that you do not know.\n\n"
        f"# How to answer\n\n{build_answer_format(role)}\n"
    )
