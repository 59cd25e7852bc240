"""`uwf workflow put`: build a file, and register it unless it is the newest version already."""

import os
from typing import Any, NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.workflow.build import outside_of, read_workflow_source
from uwf_git.commands.workflow.files import includes_beside
from uwf_git.commands.workflow.find import find_used
from uwf_git.errors import Refused
from uwf_git.model.definition.definition import Definition
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.model.problem import Problem
from uwf_git.model.workflow import build_workflow, describe_check
from uwf_git.model.workflow_name import fold_workflow_name
from uwf_git.store.nodes.tree import MissingNode
from uwf_git.store.store import Store
from uwf_git.store.trust import trust_agents
from uwf_git.store.workflows.registry import (
    SourceFiles,
    Version,
    add_version,
    find_version,
    get_version_node,
    list_names,
    read_sources,
)


def list_commands(definition: Definition) -> list[dict[str, Any]]:
    """List the payloads of the agents that a file names, and of the checks of its roles."""
    default = [] if definition.default_agent is None else [definition.default_agent]
    agents = [each.as_payload() for each in (*default, *definition.agent_overrides.values())]
    roles = definition.roles.values()
    return agents + [describe_check(command) for role in roles for command in role.checks]


class PutWorkflow(NamedTuple):
    """A registered workflow."""

    name: str
    workflow: NodeHash
    version: str
    """The commit of the version."""

    changed: bool
    """Whether this put added the version."""

    warnings: tuple[Problem, ...] = ()
    """What may be a mistake in the file, by line; *file* is that of an included file."""


def put_workflow(
    store: Store,
    caller: Caller,
    source: bytes,
    *,
    path: str | None = None,
    workdir: str | None = None,
) -> PutWorkflow:
    """Register the workflow in the YAML file *source*; its agents are trusted from now on.

    The relative paths in them are those of *workdir*, by default the caller's directory. *path* is
    the file's path, for its includes; without one it can include nothing. Putting the
    same file again changes nothing; a changed file, or changed included files, add a version.

    Raises:
        BadYaml: it is not YAML.
        BadIncludes: files cannot be included.
        InvalidWorkflow: it has problems; the error lists all of them.
        Refused: its name is taken in other case.
        WorkflowMoved: another process put a version at the same time.
    """
    includes = includes_beside(path)
    outside = outside_of(path, find_used(store, caller.cwd))
    definition = read_workflow_source(source, includes, outside)
    name = definition.name
    _check_twins(store, name)
    seen = find_version(store, name)
    workflow, closure = build_workflow(definition, timestamp=caller.now_ms())
    directory = os.path.join(caller.cwd, os.path.expanduser(workdir or ""))
    trust_agents(store, list_commands(definition), directory)
    files = SourceFiles(source, includes.files)
    if seen is not None:
        if _is_same(store, seen, workflow, files):
            return PutWorkflow(
                name, seen.workflow, seen.commit.oid, changed=False, warnings=definition.warnings
            )
        closure = [_first_written(store, seen, node) for node in closure]
        workflow = _first_written(store, seen, workflow)
    version = add_version(
        store,
        seen,
        added=(name, workflow, closure),
        source=files,
        signing=caller.signing(store),
    )
    return PutWorkflow(
        name, version.workflow, version.commit.oid, changed=True, warnings=definition.warnings
    )


def _is_same(store: Store, seen: Version, workflow: Node, files: SourceFiles) -> bool:
    if seen.is_removed or seen.workflow != workflow.hash:
        return False
    return read_sources(store.objects, seen.commit) == files


def _check_twins(store: Store, name: str) -> None:
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


def _first_written(store: Store, seen: Version, node: Node) -> Node:
    """Return the node as the version before has it, so that equal content keeps its first blob."""
    try:
        return get_version_node(store, seen, node.hash)
    except MissingNode:
        return node
