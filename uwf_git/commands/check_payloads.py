"""Checking payloads, many at a time: which of them break their schemas.

Owns: gathering what has to be tried behind the fence, so that one child tries hundreds.
Knows nothing of: where payloads come from; what asks gets its own question back.
Always true: whatever the schemas are, the time is bounded: one that went over the limits is not
tried again, and after a few of them none is; what was not tried is told, never taken for right.
"""

from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from uwf_git.agents.fence import DEFAULT, FencedBug, FenceLimits, run_fenced
from uwf_git.errors import Refused
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.problem import Problem

_MIB = 1024 * 1024
_MOST_WAITING = 400
_MOST_WAITING_BYTES = 4 * _MIB
# Each costs a second of the processor. A push with more hostile schemas is hostile altogether.
_MOST_REFUSED = 8

Asker = TypeVar("Asker")


class Question(NamedTuple, Generic[Asker]):
    """A payload that is to be held against a schema, and what its references are."""

    asker: Asker
    schema: Node
    """Of a self-typed one the payload has to be a JSON Schema too."""

    payload: Any
    size_bytes: int
    """About as much as both take."""

    wants_references: bool = False


class Answer(NamedTuple, Generic[Asker]):
    """What came of a question."""

    asker: Asker
    problems: tuple[Problem, ...] = ()
    references: tuple[NodeHash, ...] = ()
    refused: str | None = None
    """Why it could not be tried; None if it was."""


class PayloadChecks(Generic[Asker]):
    """The questions that wait for their answers."""

    def __init__(self) -> None:
        self._waiting: list[Question[Asker]] = []
        self._waiting_bytes = 0
        self._refused: dict[str, str] = {}

    def ask(self, question: Question[Asker]) -> Iterator[Answer[Asker]]:
        """Take a question, and give the answers of all when there are many."""
        self._waiting.append(question)
        self._waiting_bytes += question.size_bytes
        if len(self._waiting) >= _MOST_WAITING or self._waiting_bytes >= _MOST_WAITING_BYTES:
            yield from self.answer()

    def answer(self) -> Iterator[Answer[Asker]]:
        """Give the answers of all questions that wait."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        fresh = [each for each in waiting if self._may_be_tried(each)]
        yield from (self._not_tried(each) for each in waiting if not self._may_be_tried(each))
        try:
            yield from _try(fresh)
        except (Refused, FencedBug):
            # One of them spoils it for all; alone, the others have their answers.
            for each in fresh:
                yield from self._answer_one(each)

    def _may_be_tried(self, question: Question[Asker]) -> bool:
        return question.schema.hash not in self._refused and len(self._refused) < _MOST_REFUSED

    def _answer_one(self, question: Question[Asker]) -> Iterator[Answer[Asker]]:
        if not self._may_be_tried(question):
            yield self._not_tried(question)
            return
        try:
            yield from _try([question])
        except Refused as error:
            self._refused[question.schema.hash] = error.message
            yield self._not_tried(question)
        except FencedBug as bug:
            self._refused[question.schema.hash] = str(bug).strip().rpartition("\n")[2][:200]
            yield self._not_tried(question)

    def _not_tried(self, question: Question[Asker]) -> Answer[Asker]:
        name = question.schema.hash
        why = self._refused.get(name, "too many others took too much")
        return Answer(question.asker, refused=f"cannot be held against schema {name}: {why}")


def _try(questions: list[Question[Asker]]) -> Iterator[Answer[Asker]]:
    if not questions:
        return
    # jsonschema costs 90 ms of start-up, which what is plainly valid need not pay. It is imported
    # here and not in the child, where it would be imported for each anew.
    from uwf_git.model.references import collect_references  # noqa: PLC0415 (see above)
    from uwf_git.model.schema_check import check_schema, check_value  # noqa: PLC0415 (see above)

    def work() -> list[tuple[list[tuple[str, str]], list[str]]]:
        told: list[tuple[list[tuple[str, str]], list[str]]] = []
        for each in questions:
            schema, payload = each.schema.payload, each.payload
            found = check_schema(payload) if each.schema.is_self_typed else []
            found = found or check_value(schema, payload)
            references = collect_references(schema, payload) if each.wants_references else []
            told.append(([(problem.path, problem.message) for problem in found], list(references)))
        return told

    size_bytes = sum(each.size_bytes for each in questions)
    # As cas_check.py has it for one: what is small is stopped soon.
    seconds = 1 + size_bytes // _MIB
    memory_bytes = DEFAULT.memory_bytes + 64 * size_bytes
    limits = FenceLimits(memory_bytes=memory_bytes, cpu_s=seconds, wall_s=2.0 * seconds)
    answers = run_fenced(work, limits=limits, what="the check against the schema")
    for each, (problems, references) in zip(questions, answers, strict=True):
        told = tuple(Problem(path, message) for path, message in problems)
        yield Answer(each.asker, told, tuple(NodeHash(name) for name in references))
