"""Findings: the problems of a workflow file, collected up to a limit while the file is read."""

import difflib
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from uwf_git.errors import Refused
from uwf_git.model.problem import Problem
from uwf_git.model.yaml.reader import YamlDocument

DocumentPath = tuple[str | int, ...]

_BARE_KEY = re.compile(r"[\w$-]+")
_STEP_INTO_LIST = re.compile(r"\[([0-9]+)\]\.?")
_MOST_CHOICES = 12

_MOST_PROBLEMS = 200
# A document can hold many names; the search for the nearest must stay cheap.
_MOST_CANDIDATES = 500
_LONGEST_WORD = 100


class InvalidWorkflow(Refused):
    """The file is YAML, but not a workflow."""

    code = "invalid-workflow"

    def __init__(self, problems: Sequence[Problem]) -> None:
        first = problems[0]
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems, the first"
        place = first.path or "the top"
        super().__init__(
            f"the workflow has {count} on line {first.line}{_of(first.file)} ({place}): "
            f"{first.message}",
            problems=[problem.as_document() for problem in problems],
        )
        self.problems = tuple(problems)


class Findings:
    """The problems found in one document so far."""

    def __init__(self, document: YamlDocument) -> None:
        self._document = document
        self._problems: list[Problem] = []
        self._warnings: list[Problem] = []

    def add(self, path: DocumentPath, message: str) -> None:
        """Add a problem: *message* is true of the value at *path*, which may be missing."""
        file, line = self._place(path)
        self._add(Problem(dotted(path), message, line, file))

    def warn(self, path: DocumentPath, message: str) -> None:
        """Add a warning about the value at *path*; one too many is left out."""
        if len(self._warnings) < _MOST_PROBLEMS:
            file, line = self._place(path)
            self._warnings.append(Problem(dotted(path), message, line, file))

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """All warnings, by line; warnings of included files last."""
        return tuple(_by_line(self._warnings))

    def add_below(self, path: DocumentPath, problem: Problem) -> None:
        """Add a *problem* that a checker found in the value at *path*, relative to that value."""
        value = self._document.value
        for part in path:
            value = value[part]
        inner = problem.path
        joint = "." if inner and not inner.startswith("[") else ""
        file, line = self._place(path + _locate(value, inner))
        self._add(Problem(f"{dotted(path)}{joint}{inner}", problem.message, line, file))

    def raise_if_any(self) -> None:
        """Raise InvalidWorkflow with all problems, by line; problems of included files last."""
        if self._problems:
            raise InvalidWorkflow(_by_line(self._problems))

    def read_fields(
        self, path: DocumentPath, value: Any, known: Sequence[str]
    ) -> dict[str, Any] | None:
        """Return the fields with *known* keys and a value; None and a finding: no mapping."""
        if not isinstance(value, dict):
            self.add(path, f"must be a mapping with {_choices(known)}, not {yaml_kind(value)}")
            return None
        for key in value:
            if key not in known:
                self.add((*path, key), f"unknown key {shown(key)}; {suggestion(key, known)}")
        return {key: value[key] for key in known if value.get(key) is not None}

    def read_text(self, path: DocumentPath, value: Any) -> str | None:
        """Return *value* if it is text; else None, and add a finding."""
        if isinstance(value, str):
            return value
        quoting = "; write it in quotes" if isinstance(value, bool | int | float) else ""
        self.add(path, f"must be text, not {yaml_kind(value)}{quoting}")
        return None

    def read_optional_text(
        self, path: DocumentPath, fields: dict[str, Any], key: str
    ) -> str | None:
        return self.read_text((*path, key), fields[key]) if key in fields else None

    def _add(self, problem: Problem) -> None:
        self._problems.append(problem)
        if len(self._problems) == _MOST_PROBLEMS:
            self.raise_if_any()

    def _place(self, path: DocumentPath) -> tuple[str | None, int | None]:
        # Something missing has no line; its parent does.
        while (place := self._document.place(path)) is None and path:
            path = path[:-1]
        return place or (None, None)


def _by_line(problems: Sequence[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda each: (each.file or "", each.line or 0))


def _of(file: str | None) -> str:
    return "" if file is None else f" of {file}"


def yaml_kind(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list) else "a mapping"


def find_nearest(word: str, known: Iterable[str]) -> str | None:
    by_folded = {_folded(candidate): candidate for candidate in islice(known, _MOST_CANDIDATES)}
    nearest = difflib.get_close_matches(_folded(word), by_folded, n=1)
    return by_folded[nearest[0]] if nearest else None


def suggestion(word: str, known: Sequence[str]) -> str:
    """Suggest what *word* probably means, or list the choices."""
    nearest = find_nearest(word, known)
    return f"did you mean {shown(nearest)}?" if nearest else f"there is {_choices(known)}"


def dotted(path: DocumentPath) -> str:
    """Write *path* as people read it: ``moderator.graph[2].to``; the root is empty."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _BARE_KEY.fullmatch(part) and len(part) <= _LONGEST_WORD:
            text += f".{part}" if text else part
        else:
            text += f"[{shown(part)}]"
    return text


def shown(word: str) -> str:
    """Quote *word* for a message, in which it may not be longer than a name can be."""
    return repr(word if len(word) <= _LONGEST_WORD else f"{word[: _LONGEST_WORD - 1]}…")


def _choices(known: Sequence[str]) -> str:
    choices = ", ".join(word[:_LONGEST_WORD] for word in known[:_MOST_CHOICES])
    return f"{choices}, …" if len(known) > _MOST_CHOICES else choices


def _folded(word: str) -> str:
    return word[:_LONGEST_WORD].casefold().replace("_", "").replace("-", "")


def _locate(value: Any, inner: str) -> DocumentPath:
    """Find as much of *inner* as leads into *value*; keys may hold dots: the longest counts."""
    found: DocumentPath = ()
    while inner:
        part, inner = _first_part(value, inner)
        if part is None:
            break
        found = (*found, part)
        value = value[part]
    return found


def _first_part(value: Any, inner: str) -> tuple[str | int | None, str]:
    if isinstance(value, list):
        step = _STEP_INTO_LIST.match(inner)
        if step and int(step[1]) < len(value):
            return int(step[1]), inner[step.end() :]
    if isinstance(value, dict):
        fitting = [key for key in value if inner == key or inner.startswith((f"{key}.", f"{key}["))]
        if fitting:
            key = max(fitting, key=len)
            return key, inner[len(key) :].removeprefix(".")
    return None, ""
