"""Errors of YAML documents, with the line and, for an included file, its path."""

from typing import Any

from uwf_git.errors import Refused
from uwf_git.model.problem import Problem


class BadYaml(Refused):
    """The bytes are not one YAML document of JSON values within the limits."""

    code = "bad-yaml"

    def __init__(
        self, problem: str, *, line: int | None = None, file: str | None = None, **facts: Any
    ) -> None:
        where = "" if line is None else f"line {line}: "
        if file is not None:
            where = f"{file}: " if line is None else f"{file}:{line}: "
            facts["file"] = file
        super().__init__(f"{where}{problem}", problem=problem, line=line, **facts)
        self.problem = problem
        self.line = line
        self.file = file
        """The included file with the problem; None for the document itself."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return all problems, as the checks of a workflow do."""
        return (Problem("", self.problem, self.line, self.file),)


class BadIncludes(BadYaml):
    """The document is YAML, but files that it includes cannot be read."""

    code = "bad-include"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first = problems[0]
        told = [problem.as_document() for problem in problems]
        facts = {"problems": told} if len(told) > 1 else {}
        super().__init__(first.message, line=first.line, file=first.file, **facts)
        self._problems = problems

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return every problem of an include, in the order of reading."""
        return self._problems
