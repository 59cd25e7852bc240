"""Build a workflow: the bytes of a file in, nodes or a list of its problems out; and put it."""

import mmap
import os
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from uwf_git.agents.limited_fork import RunLimits, run_limited
from uwf_git.commands.caller import Caller
from uwf_git.commands.workflow.find import FoundWorkflow, UseFound, find_used, includes_beside
from uwf_git.engine.moderator import expression
from uwf_git.engine.picture.plan import Subject, ThreadMarks
from uwf_git.engine.rehearsal import check_flow_text, list_reads
from uwf_git.errors import Conflict, Problem, Refused
from uwf_git.model.definition.definition import (
    CheckText,
    Definition,
    FindUsed,
    FlowText,
    InvalidWorkflow,
    ListReads,
    Surroundings,
    table_text,
)
from uwf_git.model.definition.roles import CheckSchema, RolesFile
from uwf_git.model.definition.source import (
    Addition,
    Target,
    read_addition,
    read_definition,
    read_flow_addition,
)
from uwf_git.model.flow import Flow
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node, NotCanonical
from uwf_git.model.plain_schema import schema_check
from uwf_git.model.workflow import (
    Graph,
    Workflow,
    build_workflow,
    describe_check,
    parse_flow_node,
    parse_graph,
    parse_role,
    parse_workflow,
)
from uwf_git.model.workflow_name import fold_workflow_name
from uwf_git.model.yaml_reader import BadYaml, Includes, parse_yaml
from uwf_git.store.nodes import MissingNode, NodeCollision
from uwf_git.store.objects.pack_file import ByteCache
from uwf_git.store.store import Store
from uwf_git.store.trust import trust_agents
from uwf_git.store.workflows import (
    SourceFiles,
    Version,
    add_version,
    find_version,
    get_version_node,
    list_names,
    read_sources,
)
from uwf_git.surroundings import load

# Check all conditions and schemas of one workflow file in one limited child process.
#
# Hostile ones take for ever, and the file may hold any number of them. So the file is read twice:
# first to collect them, then with the answers.

MOST_CONDITIONS = 1_000

LIMITS = RunLimits(cpu_s=5, wall_s=10.0)
_WHAT = "the check of the conditions and schemas"
_TOO_MANY = f"is one condition too many: a workflow has at most {MOST_CONDITIONS:,} different ones"

_checked: ByteCache[str, list[Any]] = ByteCache(4 * 1024 * 1024)
"""What was found in the parts of the files that this process has checked, by these parts."""

T = TypeVar("T")


def read_with_checks(
    read: Callable[[CheckText, CheckSchema, ListReads], T], *, limits: RunLimits = LIMITS
) -> T:
    """Return what *read* returns, called twice with functions that check conditions and schemas.

    The third of its functions lists the names that a condition reads.
    """
    conditions: dict[FlowText, None] = {}
    schemas: list[Any] = []

    def collect_condition(condition: FlowText) -> None:
        if len(conditions) < MOST_CONDITIONS:
            conditions[condition] = None

    def collect_schema(schema: Any) -> list[Problem]:
        schemas.append(schema)
        return []

    with suppress(InvalidWorkflow):
        # All problems are found below.
        read(collect_condition, collect_schema, lambda _text: ())
    found, problems = _check_all([*conditions], schemas, limits)
    # In the order in which they were collected.
    told = iter(problems)
    # Where the names in scope differ from those of the first reading, others are asked for now.
    more = [_TOO_MANY if len(conditions) >= MOST_CONDITIONS else None, ()]
    return read(
        lambda each: found.get(each, more)[0],
        lambda _schema: next(told),
        lambda each: found.get(each, more)[1],
    )


def _check_all(
    conditions: list[FlowText], schemas: list[Any], limits: RunLimits
) -> tuple[dict[FlowText, list[Any]], list[list[Problem]]]:
    """Check everything, and list what is read.

    If a limit is hit, that is the problem of what was checked then.
    """
    problems: list[list[Problem]] = [[] for _schema in schemas]
    if not conditions and not schemas:
        return {}, problems
    # Imported before the fork, whose limits are for the checks.
    check_schema = schema_check.check_schema
    if any(each.language == "jsonata" for each in conditions):
        load(expression)
    # Shared with the child, which does not answer once a limit ends it.
    with mmap.mmap(-1, 8) as progress:

        def check() -> list[Any]:
            found: list[Any] = []
            for number, condition in enumerate(conditions):
                progress[:] = number.to_bytes(8)
                problem = check_flow_text(condition)
                found.append([problem, list_reads(condition) if problem is None else ()])
            for number, schema in enumerate(schemas, len(conditions)):
                progress[:] = number.to_bytes(8)
                found.append([[each.path, each.message] for each in check_schema(schema)])
            return found

        try:
            found = _check_once(
                (conditions, schemas, limits),
                lambda: run_limited(check, limits=limits, what=_WHAT),
            )
        except Refused as error:
            told: dict[FlowText, list[Any]] = {each: [None, ()] for each in conditions}
            number = int.from_bytes(progress[:])
            if number < len(conditions):
                told[conditions[number]][0] = error.message
            else:
                problems[number - len(conditions)].append(Problem("", error.message))
            return told, problems
    problems = [[Problem(*each) for each in listed] for listed in found[len(conditions) :]]
    return dict(zip(conditions, found, strict=False)), problems


def _check_once(parts: tuple[Any, ...], check: Callable[[], list[Any]]) -> list[Any]:
    """Return what *check* finds in *parts*: nothing of that changes, and it costs a process."""
    try:
        name = repr(parts)
    except RecursionError:
        return check()
    found = _checked.get(name)
    if found is None:
        found = check()
        _checked.put(name, found, len(name))
    return found


# Build a workflow: the bytes of a file in, nodes or a list of its problems out.
#
# `workflow put`, `workflow validate` and project-local files share these checks; nothing is
# written.

NotBuilt = (BadYaml, InvalidWorkflow, NotCanonical)


class BuiltWorkflow(NamedTuple):
    name: str
    node: Node

    closure: list[Node]

    included: Mapping[str, bytes]
    """The included files, byte for byte, by their path from its folder."""

    warnings: tuple[Problem, ...] = ()


def read_workflow_source(
    source: bytes,
    includes: Includes,
    outside: Surroundings | None = None,
    *,
    is_checked: bool = False,
) -> Definition:
    """Read the workflow in the YAML file *source*, with the files it includes.

    *outside* has its name and the workflows that it may use. With *is_checked* its conditions and
    schemas are known to be right.
    """
    document = parse_yaml(source, includes=includes)
    found = outside or Surroundings()

    def read(check_text: CheckText, check_schema: CheckSchema, list_reads: ListReads) -> Definition:
        return read_definition(
            document,
            check_condition=lambda condition: check_text(table_text(condition)),
            check_schema=check_schema,
            surroundings=found._replace(check_text=check_text, list_reads=list_reads),
        )

    if is_checked:
        return read(lambda _text: None, lambda _schema: [], lambda _text: ())
    return read_with_checks(read)


def read_appended(
    source: bytes, includes: Includes, *, to: tuple[tuple[str, ...], Graph], file: RolesFile
) -> Addition:
    """Read the YAML file *source*, which adds to the roles and graph in *to*, and its problems.

    *file* is the workflow's name, and the workflows that may play roles.
    """
    document = parse_yaml(source, includes=includes)
    return read_with_checks(
        lambda check_text, check_schema, _list_reads: read_addition(
            document,
            to=to,
            check_condition=lambda condition: check_text(table_text(condition)),
            check_schema=check_schema,
            file=file._replace(check_text=check_text),
        )
    )


def read_appended_nodes(
    source: bytes, includes: Includes, *, to: Target, outside: Surroundings
) -> Addition:
    """Read the YAML file *source*, which adds nodes to a flow."""
    document = parse_yaml(source, includes=includes)
    return read_with_checks(
        lambda check_text, check_schema, _list_reads: read_flow_addition(
            document,
            to=to,
            check_schema=check_schema,
            surroundings=outside._replace(check_text=check_text),
        )
    )


def build_source(
    source: bytes,
    includes: Includes,
    outside: Surroundings | None = None,
    *,
    timestamp: int,
    is_checked: bool = False,
) -> BuiltWorkflow:
    """Build the nodes of the workflow in the YAML file *source*."""
    definition = read_workflow_source(source, includes, outside, is_checked=is_checked)
    node, closure = build_workflow(definition, timestamp=timestamp)
    return BuiltWorkflow(definition.name, node, closure, includes.files, definition.warnings)


def problems_of(error: BadYaml | InvalidWorkflow | NotCanonical, path: str) -> list[Problem]:
    if isinstance(error, NotCanonical):
        return [Problem("", error.message, None, path)]
    return in_file(error.problems, path)


def in_file(problems: Iterable[Problem], path: str) -> list[Problem]:
    folder = os.path.dirname(path)
    return [
        each._replace(file=path if each.file is None else os.path.join(folder, each.file))
        for each in problems
    ]


class WorkflowValidation(NamedTuple):
    built: BuiltWorkflow | None
    """The workflow; None if it has a problem."""

    problems: tuple[Problem, ...]

    warnings: tuple[Problem, ...] = ()
    """What may be a mistake, each with its file; only of a workflow without problems."""


def validate_workflow(
    source: bytes, *, path: str | None, shown: str, find_used: FindUsed | None = None
) -> WorkflowValidation:
    """Check the workflow file *source*, at *path* (None: stdin), in problems called *shown*."""
    outside = outside_of(path, find_used)
    try:
        built = build_source(source, includes_beside(path), outside, timestamp=0)
    except NotBuilt as error:
        return WorkflowValidation(None, tuple(problems_of(error, shown)))
    return WorkflowValidation(built, (), tuple(in_file(built.warnings, shown)))


def outside_of(path: str | None, find_used: FindUsed | None) -> Surroundings:
    """Return what is outside of the workflow file at *path*; None is standard input."""
    stem = None if path is None else os.path.splitext(os.path.basename(path))[0]
    name = None if stem is None else unicodedata.normalize("NFC", stem)
    return Surroundings(name) if find_used is None else Surroundings(name, find_used=find_used)


# `uwf workflow put`: build a file, and register it unless it is the newest version already.


def list_commands(definition: Definition) -> list[dict[str, Any]]:
    """List the payloads of the agents that a file names, and of the checks of its roles."""
    default = [] if definition.default_agent is None else [definition.default_agent]
    agents = [each.as_payload() for each in (*default, *definition.agent_overrides.values())]
    roles = definition.roles.values()
    return agents + [describe_check(command) for role in roles for command in role.checks]


class PutWorkflow(NamedTuple):
    name: str
    workflow: NodeHash
    version: str

    changed: bool

    warnings: tuple[Problem, ...] = ()
    """What may be a mistake in the file, by line; *file* names an included file."""


def put_workflow(
    store: Store,
    caller: Caller,
    source: bytes,
    *,
    path: str | None = None,
    workdir: str | None = None,
    accept: UseFound = lambda _found: None,
) -> PutWorkflow:
    """Register the workflow in the YAML file *source*; its agents are trusted from now on.

    *accept* is called with it before that, and may refuse it. The relative paths in its agents are
    those of *workdir*, by default the caller's directory. *path* is the file's path, for its
    includes; without *path* it can include nothing. Putting the same file again changes nothing; a
    changed file, or changed included files, add a version.
    """
    includes = includes_beside(path)
    outside = outside_of(path, find_used(store, caller.cwd))
    definition = read_workflow_source(source, includes, outside)
    name = definition.name
    folded = fold_workflow_name(name)
    for other in list_names(store):
        if other != name and fold_workflow_name(other) == folded:
            raise Refused(
                f"workflow {name} differs from {other} only by case",
                code="case-twin",
                hint=f"choose another name, or put it as {other}",
                workflow=name,
                twin=other,
            )
    seen = find_version(store, name)
    workflow, closure = build_workflow(definition, timestamp=caller.now_ms())
    first = [_first_written(store, seen, node) for node in (workflow, *closure)]
    accept(FoundWorkflow(parse_workflow(workflow), (workflow, *closure)))
    directory = os.path.join(caller.cwd, os.path.expanduser(workdir or ""))
    trust_agents(store, list_commands(definition), directory)
    files = SourceFiles(source, includes.files)
    version = _find_same(store, seen, workflow, files)
    is_changed = version is None
    if version is None:
        signing = caller.signing(store)
        try:
            version = add_version(
                store, seen, added=(name, first[0], first[1:]), source=files, signing=signing
            )
        except Conflict:
            # Several first runs of one file put the same.
            version = _find_same(store, find_version(store, name), workflow, files)
            is_changed = False
            if version is None:
                raise
    return PutWorkflow(name, version.workflow, version.commit.oid, is_changed, definition.warnings)


def _find_same(
    store: Store, seen: Version | None, workflow: Node, files: SourceFiles
) -> Version | None:
    """Return the version *seen* if it has the same content."""
    if seen is None or seen.is_removed or seen.workflow != workflow.hash:
        return None
    return seen if read_sources(store.objects, seen.commit) == files else None


def _first_written(store: Store, seen: Version | None, node: Node) -> Node:
    """Return the node as the version before has it, so that equal content keeps its first blob."""
    kept = node
    with suppress(MissingNode):
        kept = node if seen is None else get_version_node(store, seen, node.hash)
    if (kept.type, kept.payload) != (node.type, node.payload):
        raise NodeCollision(node.hash)
    return kept


# `uwf workflow graph`: what the picture of a workflow shows.


def picture_workflow(workflow: Workflow, closure: Iterable[Node]) -> Subject:
    """Return what the picture of *workflow* shows, whose nodes *closure* has."""
    return view_moves(workflow, {node.hash: node for node in closure}.__getitem__)


def picture_source(
    source: bytes, *, path: str | None, find_used: FindUsed | None = None
) -> Subject:
    """Return what the picture of the workflow file *source* shows; nothing is stored."""
    built = build_source(source, includes_beside(path), outside_of(path, find_used), timestamp=0)
    return picture_workflow(parse_workflow(built.node), (built.node, *built.closure))


def view_moves(
    workflow: Workflow,
    get_node: Callable[[NodeHash], Node],
    mark: Callable[[Graph | Flow], ThreadMarks] | None = None,
) -> Subject:
    """Return what a picture of *workflow* shows; *mark* tells what a thread adds."""
    moves: Graph | Flow
    if workflow.flow is not None:
        moves = parse_flow_node(get_node(workflow.flow))
    else:
        moves = parse_graph(get_node(workflow.get_moderator()))
    roles = {name: parse_role(get_node(role)).description for name, role in workflow.roles.items()}
    return Subject(
        workflow.name, workflow.description, roles, moves, None if mark is None else mark(moves)
    )
