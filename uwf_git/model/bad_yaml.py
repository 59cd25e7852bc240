"""Bad YAML: what is told of a document that cannot be read.

Owns: the words, and where each problem is: a line of the document, or of a file that it includes.
Knows nothing of: how YAML is read.
"""

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
        """The included file that it is in; None for the document itself."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Give all that was found, as the checks of a workflow do."""
        return (Problem("", self.problem, self.line, self.file),)


class BadIncludes(BadYaml):
    """The document is YAML, and files that it includes cannot be."""

    code = "bad-include"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first = problems[0]
        told = [problem.as_document() for problem in problems]
        facts = {"problems": told} if len(told) > 1 else {}
        super().__init__(first.message, line=first.line, file=first.file, **facts)
        self._problems = problems

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Give everything that cannot be included, in the order in which it was met."""
        return self._problems
