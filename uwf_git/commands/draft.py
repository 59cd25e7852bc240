"""Judge a draft: a valid workflow that names no command, reads what is set, and comes to an end."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from uwf_git.agents.limited_fork import RunLimits, run_limited
from uwf_git.commands.caller import Caller
from uwf_git.commands.inspect.show import get_text
from uwf_git.commands.start import Started, StartRequest, empty_prompt, start_thread
from uwf_git.commands.turn.next_move import PERSON
from uwf_git.commands.workflow.build import NotBuilt, problems_of, read_workflow_source
from uwf_git.commands.workflow.find import (
    find_shipped_workflow,
    find_used,
    includes_beside,
    list_local,
)
from uwf_git.engine.rehearsal import rehearse
from uwf_git.errors import Problem, Refused
from uwf_git.model.builtin import STEP
from uwf_git.model.definition.definition import (
    Definition,
    DocumentPath,
    Findings,
    FindUsed,
    InvalidWorkflow,
    Surroundings,
)
from uwf_git.model.names import ThreadId
from uwf_git.model.workflow import build_workflow
from uwf_git.model.workflow_name import fold_workflow_name
from uwf_git.model.yaml_reader import BadYaml, YamlDocument, parse_yaml
from uwf_git.store.store import Store
from uwf_git.store.threads.history import read_snapshot
from uwf_git.store.threads.naming import resolve_head
from uwf_git.store.workflows import (
    SourceFiles,
    find_shipped,
    find_version,
    list_names,
    list_shipped,
    read_sources,
)

# What a draft may not say: anything that would run a command which nobody has typed.

_LISTS = ("nodes", "else")


def check_rules(findings: Findings, value: Mapping[str, Any]) -> None:
    """Add a finding for each command in the workflow file *value*, valid or not."""
    if "defaultAgent" in value:
        findings.add(
            ("defaultAgent",), "a draft names no agent; whoever runs the workflow chooses it"
        )
    overrides = value.get("agentOverrides")
    if overrides is not None and not isinstance(overrides, dict):
        findings.add(("agentOverrides",), f"a draft may only say `{{ROLE: {PERSON}}}` here")
    for role, agent in overrides.items() if isinstance(overrides, dict) else ():
        if agent != PERSON:
            findings.add(
                ("agentOverrides", role),
                f"a draft may only bind a role to {PERSON}; whoever runs it chooses other agents",
            )
    for path, fields in _list_runners(value):
        if "checks" in fields:
            findings.add((*path, "checks"), "a draft has no checks: they would be run as commands")


def _list_runners(value: Mapping[str, Any]) -> Iterator[tuple[DocumentPath, Mapping[str, Any]]]:
    """List the roles and the nodes of a file, and whatever verifies a node, each with its path."""
    roles = value.get("roles")
    for name, role in roles.items() if isinstance(roles, dict) else ():
        if isinstance(role, dict):
            yield ("roles", name), role
    waiting: list[tuple[DocumentPath, Any]] = [((), value), (("root",), value.get("root"))]
    while waiting:
        path, node = waiting.pop()
        if not isinstance(node, dict):
            continue
        yield path, node
        waiting.append(((*path, "verifiedBy"), node.get("verifiedBy")))
        for key in _LISTS:
            listed = node.get(key)
            waiting += [
                ((*path, key, index), item)
                for index, item in enumerate(listed if isinstance(listed, list) else ())
            ]


def find_path(place: str, root: DocumentPath) -> DocumentPath:
    """Return where in the file the node at a *place* of a flow is; *root*: where its root is."""
    path = root
    for part in place.split("/")[1:]:
        path = (*path, "else" if part.startswith("e") else "nodes", int(part.removeprefix("e")))
    return path


# Judge a draft: it has to be a valid workflow, name no command, and come to an end.
#
# A draft is foreign text. It is held to more than a file that a person puts: `workflow put`
# trusts the commands in it, and nobody has typed these.

LIMITS = RunLimits(cpu_s=5, wall_s=10.0)

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)")
_LONGEST_LINE = 200


class Around(NamedTuple):
    find_used: FindUsed

    is_taken: Callable[[str, str], bool]
    """Check whether another file has defined a workflow of this name already."""


class Judgement(NamedTuple):
    source: str

    problems: tuple[Problem, ...]
    name: str = ""

    roles: tuple[str, ...] = ()


def find_source(text: str) -> str:
    """Return the workflow file in what an agent said: its one fenced block, else the whole text."""
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
    content, outside = source.encode(errors="replace"), Surroundings(find_used=around.find_used)
    try:
        document = parse_yaml(content, includes=includes_beside(None))
    except BadYaml as error:
        return Judgement(source, tuple(problems_of(error, "")))
    try:
        definition = read_workflow_source(content, includes_beside(None), outside)
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
    place = "" if problem.line is None else f"line {problem.line}"
    where = ", ".join(filter(None, (place, problem.path)))
    return f"{where}: {problem.message}" if where else problem.message


def find_problems(
    document: YamlDocument, check: Callable[[Findings, Mapping[str, Any]], None]
) -> list[Problem]:
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
        root: DocumentPath = ("root",) if "root" in document.value else ()
        path = ("roles", at) if is_graph else find_path(at, root)
    message = f"in a rehearsal with the least answers: {problem}"
    return tuple(roles), find_problems(document, lambda findings, _: findings.add(path, message))


# The task of a drafting thread: the wish, the patterns in a line each, and the two nearest whole.
#
# The words of the drafter's role, with the reference of the language, are in
# workflows/draft.yaml.

_MARK = "\n\n# Patterns\n\n"
_WHOLE = 2
_WORD = re.compile(r"\w+")


class Pattern(NamedTuple):
    name: str
    words: tuple[str, ...]
    """Words of wishes that ask for it, or their beginnings, in lower case."""


PATTERNS = (
    Pattern("review-loop", ("review", "improve", "revise", "polite", "critic", "审", "评", "改")),
    Pattern("pipeline", ("then", "first", "finally", "after", "step", "然后", "先", "最后")),
    Pattern("approve", ("approv", "person", "human", "confirm", "批准", "确认", "人工", "同意")),
    Pattern("orchestrate", ("each", "every", "split", "parts", "per ", "每", "拆", "分解")),
    Pattern("fan-out", ("parallel", "at once", "same time", "sides", "并行", "同时", "多个")),
    Pattern("vote", ("vote", "majority", "agree", "decide", "投票", "表决", "多数")),
    Pattern("route", ("kind", "depending", "classif", "sort", "triage", "分类", "类型", "根据")),
    Pattern("until-done", ("until", "again", "repeat", "as long", "直到", "反复", "循环", "重复")),
)
"""The shipped patterns; of those that fit a wish alike the first is the nearest."""


def build_prompt(wish: str) -> str:
    lines, texts = [], []
    nearest = find_nearest(wish)
    for pattern in PATTERNS:
        file = find_shipped(pattern.name)
        text = "" if file is None else Path(file.path).read_text(encoding="utf-8")
        lines.append(f"- {text.partition(chr(10))[0].removeprefix('# ')}")
        if pattern.name in nearest:
            texts.append(f"```yaml\n{text}```")
    parts = ["\n".join(lines), "The nearest two, whole:", *texts]
    return f"{wish.strip()}{_MARK}" + "\n\n".join(parts) + "\n"


def find_wish(prompt: str) -> str:
    return prompt.rpartition(_MARK)[0] or prompt


def find_nearest(wish: str) -> Sequence[str]:
    """Return the names of the patterns that come nearest to *wish*."""
    folded = wish.casefold()
    words = set(_WORD.findall(folded))
    ranked = sorted(PATTERNS, key=lambda each: -_count(each, folded, words))
    return [each.name for each in ranked[:_WHOLE]]


def _count(pattern: Pattern, folded: str, words: set[str]) -> int:
    return sum(
        word in folded
        if not word.isascii() or " " in word
        else any(each.startswith(word) for each in words)
        for word in pattern.words
    )


# Draft a workflow: start the thread in which an agent writes it, and read what came of it.
#
# The thread runs the shipped workflow `draft`, in which a validator judges each try. What it
# found good is judged again where it is read: only that decides.

WORKFLOW = "draft"
DRAFTER = "drafter"


class NoDraftThread(Refused):
    """The thread drafts no workflow, or has not begun to."""

    code = "no-draft-thread"

    def __init__(self, thread: str, problem: str) -> None:
        super().__init__(
            f"thread {thread} {problem}",
            hint="`uwf thread list --all --workflow draft` lists the threads that draft workflows",
            thread=thread,
        )


def draft_stopped(thread: str, status: str) -> Refused:
    """Return the error for a drafting that stopped before its end."""
    return Refused(
        f"the drafting has stopped: thread {thread} is {status}",
        code="draft-stopped",
        hint=f"`uwf workflow draft --thread {thread}` goes on",
        thread=thread,
    )


class DraftRequest(NamedTuple):
    wish: str
    agent: str | None = None
    """The command or the settings of the agent; None: the default one."""

    default_agent: str | None = None

    needs_agent: bool = True
    """Refuse to begin without an agent whose program is found here."""


class Draft(NamedTuple):
    thread: ThreadId
    wish: str
    why: str
    """Why it is as it is, in the agent's words."""

    questions: tuple[str, ...]
    """What the agent has to know first; then there is no file."""

    judgement: Judgement


def start_draft(
    store: Store, caller: Caller, request: DraftRequest, *, thread: ThreadId
) -> Started:
    """Start the thread that drafts a workflow; nothing runs."""
    if not request.wish.strip():
        raise empty_prompt()
    start = StartRequest(
        WORKFLOW,
        build_prompt(request.wish),
        () if request.agent is None else (f"{DRAFTER}={request.agent}",),
        request.default_agent,
        needs_agents=request.needs_agent,
        found=find_shipped_workflow(store, WORKFLOW),
    )
    return start_thread(store, caller, start, thread=thread)


def read_draft(store: Store, cwd: str, text: str) -> Draft:
    head = resolve_head(store, text)
    snapshot = read_snapshot(store, head.commit)
    if snapshot.record.workflow_name != WORKFLOW:
        name = snapshot.record.workflow_name
        raise NoDraftThread(head.thread, f"runs {name}, and drafts no workflow")
    wish = find_wish(str(snapshot.get_start().payload["prompt"]))
    for node in snapshot.walk_chain():
        if node.type == STEP and node.payload["role"] == DRAFTER:
            meta = node.payload["meta"]
            found = judge(
                get_text(snapshot, node.payload.get("content")),
                look_around(store, cwd),
                prompt=wish,
            )
            questions = tuple(map(str, meta.get("questions") or ()))
            return Draft(head.thread, wish, str(meta.get("why") or ""), questions, found)
    raise NoDraftThread(head.thread, "has no draft yet")


def answer_as_validator(store: Store, cwd: str, thread: str) -> tuple[dict[str, Any], str]:
    judgement = read_draft(store, cwd, thread).judgement
    problems = [describe_problem(each) for each in judgement.problems]
    told = describe(judgement) if problems else f"It ends: {' → '.join(judgement.roles)}."
    return {"valid": not problems, "problems": problems}, told


def look_around(store: Store, cwd: str) -> Around:
    local = [file.name for file in list_local(cwd)]
    shipped = [file.name for file in list_shipped()]
    taken = {fold_workflow_name(name) for name in (*local, *list_names(store), *shipped)}

    def is_taken(name: str, source: str) -> bool:
        return fold_workflow_name(name) in taken and not is_put(store, name, source)

    return Around(find_used(store, cwd), is_taken)


def is_put(store: Store, name: str, source: str) -> bool:
    """Check whether the newest version of the workflow *name* is *source*."""
    version = find_version(store, name)
    if version is None or version.is_removed:
        return False
    return read_sources(store.objects, version.commit) == SourceFiles(source.encode(), {})
