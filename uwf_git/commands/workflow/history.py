"""The versions of a workflow: what changed in each, and the versions that restore or remove it."""

import difflib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.workflow.find import WorkflowRemoved, find_workflow
from uwf_git.engine.diff import spelled
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.builtin import TYPES, walk_closure
from uwf_git.model.names import NodeHash, NotANodeHash, parse_node_prefix
from uwf_git.model.node import Node
from uwf_git.model.workflow import (
    Workflow,
    parse_flow_node,
    parse_graph,
    parse_role,
    parse_workflow,
)
from uwf_git.store.objects.commit import body_of
from uwf_git.store.store import Store
from uwf_git.store.workflows import (
    ROLLBACK,
    SOURCE_FILE,
    SourceFiles,
    Version,
    find_version,
    get_version_node,
    list_names,
    no_such_workflow,
    read_sources,
    remove_version,
    restore_version,
    walk_versions,
)

# `uwf workflow show`: a workflow's nodes as one document.


def show_workflow(store: Store, text: str, *, cwd: str | None = None) -> dict[str, Any]:
    """Return the document of the workflow that *text* names, with *cwd* also in its project."""
    found = find_workflow(store, text, cwd=cwd)
    document = describe_workflow(found.workflow, found.closure)
    return document | _given(file=found.file, shadows=found.shadows)


def describe_workflow(workflow: Workflow, closure: Iterable[Node]) -> dict[str, Any]:
    nodes = {node.hash: node for node in closure}
    roles: dict[str, Any] = {}
    for name, hash_ in workflow.roles.items():
        role = parse_role(nodes[hash_])
        roles[name] = {
            "hash": hash_,
            "description": role.description,
            "systemPrompt": role.system_prompt,
            "outputSchema": nodes[role.output_schema].payload,
            **_given(
                workflow=role.workflow,
                extractPrompt=role.extract_prompt,
                checks=list(role.checks) or None,
                outputFile=role.output_file,
                inputFiles=list(role.input_files) or None,
            ),
        }
    return {
        "workflow": workflow.hash,
        "name": workflow.name,
        "description": workflow.description,
        "roles": roles,
        **_describe_moves(workflow, nodes),
        **_given(
            defaultAgent=workflow.default_agent,
            agentOverrides=dict(workflow.agent_overrides) or None,
            initialState=workflow.initial_state,
            config=dict(workflow.config) or None,
        ),
    }


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _describe_moves(workflow: Workflow, nodes: Mapping[NodeHash, Node]) -> dict[str, Any]:
    """Describe the graph, or the flow: its table as it is stored."""
    if workflow.flow is not None:
        flow = nodes[workflow.flow]
        parse_flow_node(flow)
        return {
            "flow": {"hash": flow.hash, "type": TYPES[flow.type].payload["title"], **flow.payload}
        }
    moderator = nodes[workflow.get_moderator()]
    rows = [
        {
            "from": position,
            "transitions": [{"to": way.to, "condition": way.condition} for way in ways],
        }
        for position, ways in parse_graph(moderator).items()
    ]
    return {"moderator": {"hash": moderator.hash, "graph": rows}}


# `uwf workflow rollback` and `remove`: add a version that restores or removes a workflow.
#
# A rollback restores an earlier version byte for byte, after reading all of it. It trusts no
# agents: the version may have been fetched.

# git's own shortest abbreviation.
_SHORTEST_COMMIT = 4


def _no_such_version(name: str, what: str) -> Refused:
    return Refused(
        f"workflow {name} has {what}",
        code="no-such-version",
        hint=f"`uwf workflow history {name}` lists its versions",
        workflow=name,
    )


def get_newest(store: Store, text: str) -> Version:
    name = unicodedata.normalize("NFC", text)
    names = list_names(store)
    version = find_version(store, name) if name in names else None
    if version is None:
        raise no_such_workflow(text, difflib.get_close_matches(text, names, n=3))
    return version


def choose_version(name: str, versions: Sequence[Version], text: str) -> Version:
    """Return the newest of *versions* that *text* names: a prefix of a hash or of a commit."""
    prefix = None
    with suppress(NotANodeHash):
        prefix = parse_node_prefix(text)
    found: dict[str, Version] = {}
    for version in versions:
        if prefix is not None and version.workflow.startswith(prefix):
            found.setdefault(version.workflow, version)
        elif len(text) >= _SHORTEST_COMMIT and version.commit.oid.startswith(text.lower()):
            found[version.commit.oid] = version
    if not found:
        raise _no_such_version(name, f"no version {text[:60]!r}")
    if len(found) > 1:
        matches = sorted(found)
        raise Refused(
            f"{len(matches)} versions begin with {text}: {', '.join(matches[:10])}",
            code="ambiguous-version",
            hint="give more of the hash",
            matches=matches,
        )
    return found.popitem()[1]


class RolledBack(NamedTuple):
    name: str
    workflow: NodeHash
    version: str

    restored: str

    replaced: NodeHash | None
    """The workflow of the name before; None if it had been removed."""


def rollback_workflow(
    store: Store, caller: Caller, name: str, *, text: str | None = None, reason: str = ""
) -> RolledBack:
    """Restore the version *text* names, or the newest different, as the newest."""
    seen = get_newest(store, name)
    kept = (each for each in walk_versions(store, seen) if not each.is_removed)
    old = _before(seen, kept) if text is None else choose_version(seen.name, list(kept), text)
    if not seen.is_removed and old.commit.tree == seen.commit.tree:
        raise Refused(
            f"workflow {seen.name} is at {seen.workflow} already",
            code="already-there",
            hint=f"`uwf workflow history {seen.name}` lists the others",
            workflow=seen.name,
        )
    # All of the version is read before its name points at it again.
    root, *_ = _closure(store, old)
    parse_workflow(root)
    read_sources(store.objects, old.commit)
    version = restore_version(store, seen, old, reason=reason, signing=caller.signing(store))
    return RolledBack(
        seen.name,
        version.workflow,
        version.commit.oid,
        old.commit.oid,
        None if seen.is_removed else seen.workflow,
    )


def _before(seen: Version, kept: Iterable[Version]) -> Version:
    for version in kept:
        if seen.is_removed or version.commit.tree != seen.commit.tree:
            return version
    raise _no_such_version(seen.name, "no version before its newest")


class RemovedWorkflow(NamedTuple):
    name: str
    workflow: NodeHash

    version: str


def remove_workflow(
    store: Store, caller: Caller, name: str, *, reason: str = ""
) -> RemovedWorkflow:
    """Remove the workflow *name* from the registry; threads carry their workflows on."""
    seen = get_newest(store, name)
    if seen.is_removed:
        raise WorkflowRemoved(seen)
    removal = remove_version(store, seen, reason=reason, signing=caller.signing(store))
    return RemovedWorkflow(seen.name, seen.workflow, removal.commit.oid)


# `uwf workflow history`: the versions of a workflow, newest first, with what changed.
#
# A damaged version is one row that says so.

ChangeKind = Literal["added", "removed", "changed"]

# Fields whose items are compared one by one; any other field is compared as a whole.
_BY_NAME = ("roles", "transitions", "nodes", "agentOverrides", "initialState")


class WorkflowChange(NamedTuple):
    """One difference between two versions."""

    kind: ChangeKind
    path: str
    """``roles.checker.systemPrompt``; of a file ``file prompts/check.md``."""


class Contents(NamedTuple):
    described: Mapping[str, Any]
    """The document of ``describe_workflow``."""

    source: SourceFiles


def compare_versions(old: Contents, new: Contents) -> list[WorkflowChange]:
    found = [*_compare(_parts(old.described), _parts(new.described))]
    files = _compare(old.source.included, new.source.included, "file ")
    found += sorted(files, key=lambda each: each.path)
    if not found and old.source.workflow != new.source.workflow:
        # Only comments, layout or the order of keys differ: the nodes are the same.
        found.append(WorkflowChange("changed", f"file {SOURCE_FILE}"))
    return found


def _parts(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields to compare, transitions by position, and nodes of a flow by place."""
    parts = {
        key: value
        for key, value in described.items()
        if key not in {"workflow", "moderator", "flow"}
    }
    if "flow" in described:
        flow = described["flow"]
        more = {"language": flow.get("language"), "flow.type": flow["type"]}
        return {**parts, "nodes": flow["nodes"], **more}
    parts["transitions"] = {
        row["from"]: row["transitions"] for row in described["moderator"]["graph"]
    }
    return parts


def _compare(
    old: Mapping[str, Any], new: Mapping[str, Any], path: str = ""
) -> Iterator[WorkflowChange]:
    """Compare two objects at *path*; of a role that both versions have, each field."""
    for key in dict.fromkeys([*old, *new]):
        at = f"{path}{key}"
        if at in _BY_NAME or (path == "roles." and key in old and key in new):
            yield from _compare(old.get(key, {}), new.get(key, {}), f"{at}.")
        elif key not in old:
            yield WorkflowChange("added", at)
        elif key not in new:
            yield WorkflowChange("removed", at)
        elif key == "hash" and path.startswith("roles."):
            continue
        elif spelled(old[key]) != spelled(new[key]):
            yield WorkflowChange("changed", at)


def list_history(store: Store, name: str, *, limit: int | None = None) -> list[dict[str, Any]]:
    """List the versions of the workflow *name*, also removals, newest first."""
    newest = get_newest(store, name)
    versions: list[Version] = []
    damage = None
    try:
        for version in walk_versions(store, newest):
            versions.append(version)  # noqa: PERF402 (keep those before a damaged one)
    except StoreDamaged as error:
        damage = error.message
    count = len(versions) if limit is None else min(limit, len(versions))
    # One more than the limit: a row compares with the version before it.
    contents: list[Contents | StoreDamaged] = []
    for version in versions[: count + 1]:
        try:
            closure = tuple(_closure(store, version))
            described = describe_workflow(parse_workflow(closure[0]), closure)
            contents.append(Contents(described, read_sources(store.objects, version.commit)))
        except StoreDamaged as error:
            contents.append(error)
    rows = [_row(versions, contents, at) for at in range(count)]
    if damage is not None:
        rows.append({"error": damage})
    return rows[:limit]


def _row(
    versions: list[Version], contents: list[Contents | StoreDamaged], at: int
) -> dict[str, Any]:
    version, content = versions[at], contents[at]
    commit = version.commit
    row: dict[str, Any] = {
        "version": commit.oid,
        "event": version.event,
        "workflow": version.workflow,
        "timestamp": commit.time_s * 1000,
        "author": commit.author.decode(errors="replace"),
        "before": commit.parents[0] if commit.parents else None,
    }
    row |= _given(reason=body_of(commit.message) or None)
    if version.event == ROLLBACK:
        # The newest version with the same tree.
        older = (each for each in versions[at + 1 :] if not each.is_removed)
        same = (each.commit.oid for each in older if each.commit.tree == commit.tree)
        row |= _given(restored=next(same, None))
    if isinstance(content, StoreDamaged):
        return {**row, "error": content.message}
    before = contents[at + 1] if at + 1 < len(contents) else None
    if isinstance(before, Contents):
        row["changes"] = [each._asdict() for each in compare_versions(before, content)]
    return row


def _closure(store: Store, version: Version) -> Iterator[Any]:
    return walk_closure([version.workflow], lambda name: get_version_node(store, version, name))
