"""Judge a draft: it has to be a valid workflow, name no command, and come to an end.

A draft is foreign text. It is held to more than a file that a person puts: `workflow put` trusts
the commands in it, and nobody has typed these.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from uwf_git.agents.limited_fork import RunLimits, run_limited
from uwf_git.commands.draft.asked import find_path, find_unset
from uwf_git.commands.draft.rules import check_rules
from uwf_git.commands.workflow.build import NotBuilt, problems_of, read_workflow_source
from uwf_git.commands.workflow.files import includes_beside
from uwf_git.engine.rehearsal import rehearse
from uwf_git.errors import Refused
from uwf_git.model.definition.definition import Definition, FindUsed, Surroundings
from uwf_git.model.definition.findings import DocumentPath, Findings, InvalidWorkflow
from uwf_git.model.problem import Problem
from uwf_git.model.workflow import build_workflow
from uwf_git.model.yaml.include import BadYaml
from uwf_git.model.yaml.reader import YamlDocument, parse_yaml

LIMITS = RunLimits(cpu_s=5, wall_s=10.0)

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})([^`]*)")
_LONGEST_LINE = 200


class Around(NamedTuple):
    """What a draft is judged against."""

    find_used: FindUsed
    """Finds the workflows that it uses."""

    is_taken: Callable[[str, str], bool]
    """Tells whether a workflow has a name already, other than the one of the same file."""


class Judgement(NamedTuple):
    """What was found in a draft."""

    source: str
    """The workflow file."""

    problems: tuple[Problem, ...]
    name: str = ""
    """The name of the workflow, if it has no problem."""

    roles: tuple[str, ...] = ()
    """The roles that acted in its rehearsal."""


def find_source(text: str) -> str:
    """Return the workflow file in what an agent said: its one fenced block, else all of it."""
    blocks: list[str] = []
    opened: tuple[str, list[str]] | None = None
    for line in text.splitlines(keepends=True):
        mark = _FENCE.fullmatch(line)
        if opened is None:
            opened = (mark[1], []) if mark else None
        elif mark and mark[1] == opened[0] and not mark[2].strip():
            blocks.append("".join(opened[1]))
            opened = None
        else:
            opened[1].append(line)
    return blocks[0] if len(blocks) == 1 and opened is None else text


def judge(text: str, around: Around, *, prompt: str, limits: RunLimits = LIMITS) -> Judgement:
    """Judge the draft in *text*, what an agent said; its rehearsal has the task *prompt*."""
    source = find_source(text)
    problems: list[Problem] = []
    try:
        document = parse_yaml(source.encode(errors="replace"), includes=includes_beside(None))
    except BadYaml as error:
        return Judgement(source, tuple(problems_of(error, "")))
    try:
        definition = read_workflow_source(
            source.encode(errors="replace"),
            includes_beside(None),
            Surroundings(find_used=around.find_used),
        )
        build_workflow(definition, timestamp=0)
    except NotBuilt as error:
        problems = [*problems_of(error, ""), *find_problems(document, check_rules)]
        return Judgement(source, _sorted(problems))
    problems = [*definition.warnings, *find_problems(document, check_rules)]
    if around.is_taken(definition.name, source):
        message = f"there is a workflow {definition.name} already; choose another name"
        problems += find_problems(document, lambda findings, _: findings.add(("name",), message))
    problems += find_problems(
        document, lambda findings, value: _check_parts(findings, value, definition)
    )
    if problems:
        return Judgement(source, _sorted(problems))
    roles, problems = _rehearse(document, definition, prompt, limits)
    return Judgement(source, tuple(problems), "" if problems else definition.name, roles)


def describe(judgement: Judgement) -> str:
    """Return the problems, a line each, and the lines of the file that they name."""
    told = [f"- {describe_problem(each)}" for each in judgement.problems]
    lines = judgement.source.splitlines()
    width = len(str(len(lines)))
    named = {each.line for each in judgement.problems}
    numbered = [
        f"{'>' if number in named else ' '} {number:{width}} | {line[:_LONGEST_LINE]}"
        for number, line in enumerate(lines, 1)
    ]
    count = f"{len(told)} problems" if len(told) > 1 else "1 problem"
    return "\n".join([f"The draft has {count}:", "", *told, "", "The draft:", "", *numbered, ""])


def describe_problem(problem: Problem) -> str:
    """Return *problem* with its line, and the path of what it is about."""
    place = "" if problem.line is None else f"line {problem.line}"
    where = ", ".join(filter(None, (place, problem.path)))
    return f"{where}: {problem.message}" if where else problem.message


def find_problems(
    document: YamlDocument, check: Callable[[Findings, Mapping[str, Any]], None]
) -> list[Problem]:
    """Return what *check* finds in a *document*."""
    findings = Findings(document)
    try:
        check(findings, document.value if isinstance(document.value, dict) else {})
        findings.raise_if_any()
    except InvalidWorkflow as error:
        return list(error.problems)
    return []


def _sorted(problems: list[Problem]) -> tuple[Problem, ...]:
    unlike = {(each.path, each.message): each for each in problems}
    return tuple(sorted(unlike.values(), key=lambda each: each.line or 0))


def _check_parts(findings: Findings, value: Mapping[str, Any], definition: Definition) -> None:
    described = value.get("roles") or {}
    for name, role in definition.roles.items():
        # That an agent has no role among some is a warning of the validator.
        is_told = bool(described) and name not in described
        if role.workflow is None and not role.system_prompt.strip() and not is_told:
            findings.add(("roles", name), f"role {name} has no systemPrompt: say what it does")
    find_unset(findings, definition, root=_root(value))


def _rehearse(
    document: YamlDocument, definition: Definition, prompt: str, limits: RunLimits
) -> tuple[tuple[str, ...], list[Problem]]:
    def go_through() -> list[Any]:
        found = rehearse(definition, prompt)
        return [list(found.roles), found.problem, found.at]

    try:
        roles, problem, at = run_limited(go_through, limits=limits, what="the rehearsal")
    except Refused as error:
        return (), [Problem("", error.message)]
    if problem is None:
        return tuple(roles), []
    path: DocumentPath = ()
    if at is not None:
        is_graph = definition.flow is None
        path = ("roles", at) if is_graph else find_path(at, _root(document.value))
    message = f"in a rehearsal with the least answers: {problem}"
    return tuple(roles), find_problems(document, lambda findings, _: findings.add(path, message))


def _root(value: Any) -> DocumentPath:
    return ("root",) if isinstance(value, dict) and "root" in value else ()
