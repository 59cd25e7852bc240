"""Check payloads against their schemas, hundreds in one limited child process.

The total time is bounded: a schema that exceeded the limits is not tried again, and after a few
of them none is. A payload that was not tried is reported, never taken for valid.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from uwf_git.agents.limited_fork import DEFAULT, LimitedRunBug, RunLimits, run_limited
from uwf_git.errors import Refused
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.model.problem import Problem
from uwf_git.model.references import collect_references

_MIB = 1024 * 1024
_MOST_WAITING = 400
_MOST_WAITING_BYTES = 4 * _MIB
# Each costs a second of CPU time; more hostile schemas than this come from a hostile push.
_MOST_REFUSED = 8


class PayloadCheck(NamedTuple):
    """A payload to be checked against a schema, and perhaps its references to be collected."""

    origin: Any

    schema: Node
    """If it is self-typed, the payload must be a JSON Schema too."""

    payload: Any
    size_bytes: int

    wants_references: bool = False


class PayloadResult(NamedTuple):
    origin: Any
    problems: tuple[Problem, ...] = ()
    references: tuple[NodeHash, ...] = ()
    refused: str | None = None
    """Why the check could not run; None if it ran."""


class PayloadChecks:
    def __init__(self) -> None:
        self._waiting: list[PayloadCheck] = []
        self._waiting_bytes = 0
        self._refused: dict[str, str] = {}

    def ask(self, question: PayloadCheck) -> Iterator[PayloadResult]:
        """Queue a check; run the queue when it is long."""
        self._waiting.append(question)
        self._waiting_bytes += question.size_bytes
        if len(self._waiting) >= _MOST_WAITING or self._waiting_bytes >= _MOST_WAITING_BYTES:
            yield from self.answer()

    def answer(self) -> Iterator[PayloadResult]:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        fresh = [each for each in waiting if self._may_be_tried(each)]
        yield from (self._not_tried(each) for each in waiting if not self._may_be_tried(each))
        try:
            yield from _try(fresh)
        except (Refused, LimitedRunBug):
            # One check exceeded the limits for all of them: run each alone.
            for each in fresh:
                yield from self._answer_one(each)

    def _may_be_tried(self, question: PayloadCheck) -> bool:
        return question.schema.hash not in self._refused and len(self._refused) < _MOST_REFUSED

    def _answer_one(self, question: PayloadCheck) -> Iterator[PayloadResult]:
        if self._may_be_tried(question):
            try:
                yield from _try([question])
            except Refused as error:
                self._refused[question.schema.hash] = error.message
            except LimitedRunBug as bug:
                self._refused[question.schema.hash] = str(bug).strip().rpartition("\n")[2][:200]
            else:
                return
        yield self._not_tried(question)

    def _not_tried(self, question: PayloadCheck) -> PayloadResult:
        name = question.schema.hash
        why = self._refused.get(name, "too many other schemas exceeded the limits")
        return PayloadResult(
            question.origin, refused=f"cannot be checked against schema {name}: {why}"
        )


def _try(questions: list[PayloadCheck]) -> Iterator[PayloadResult]:
    if not questions:
        return
    # jsonschema costs 90 ms of start-up. Imported before the fork, so that children share it.
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
    # The smaller the payloads, the sooner the limit.
    seconds = 1 + size_bytes // _MIB
    memory_bytes = DEFAULT.memory_bytes + 64 * size_bytes
    limits = RunLimits(memory_bytes=memory_bytes, cpu_s=seconds, wall_s=2.0 * seconds)
    answers = run_limited(work, limits=limits, what="the check against the schema")
    for each, (problems, references) in zip(questions, answers, strict=True):
        told = tuple(Problem(path, message) for path, message in problems)
        yield PayloadResult(each.origin, told, tuple(NodeHash(name) for name in references))
