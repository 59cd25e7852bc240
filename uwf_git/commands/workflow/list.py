"""`uwf workflow list`: the files of the project, then the registered workflows, then the shipped.

A damaged workflow is one row that says so.
"""

from typing import Any

from uwf_git.commands.workflow.find import find_shadowed, find_used
from uwf_git.commands.workflow.local import BadLocalWorkflow, LocalFile, build_local, list_local
from uwf_git.errors import StoreDamaged
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.workflows.registry import (
    find_version,
    get_version_node,
    list_names,
    list_shipped,
)


def list_workflows(
    store: Store, *, cwd: str | None = None, limit: int | None = None
) -> list[dict[str, Any]]:
    """List the workflows of the project around *cwd*, then the registered ones, newest first.

    A registered workflow that a file of the project hides has no row of its own.
    """
    local = [] if cwd is None else list_local(cwd)
    here = {file.name for file in local}
    registered = [_row(store, name) for name in list_names(store) if name not in here]
    rows = [row for row in registered if row is not None]
    rows.sort(key=lambda row: (-int(row.get("lastUpdateTime", 0)), row["name"]))
    return [*(_local_row(store, cwd, file) for file in local), *rows][:limit]


def list_all_workflows(store: Store, *, cwd: str, limit: int | None = None) -> list[dict[str, Any]]:
    """List what ``list_workflows`` does, then the shipped workflows, by name.

    A shipped one has no row if the project or the registry has its name, or the registry had it.
    """
    rows = list_workflows(store, cwd=cwd)
    taken = {*(row["name"] for row in rows), *list_names(store)}
    shipped = [
        LocalFile(*file, is_shipped=True) for file in list_shipped() if file.name not in taken
    ]
    return [*rows, *(_local_row(store, cwd, file) for file in shipped)][:limit]


def _row(store: Store, name: str) -> dict[str, Any] | None:
    try:
        version = find_version(store, name)
        if version is None:
            return {"name": name, "error": "it was removed while the list was made"}
        if version.is_removed:
            return None
        workflow = parse_workflow(get_version_node(store, version, version.workflow))
    except StoreDamaged as error:
        return {"name": name, "error": error.message}
    return {
        "name": name,
        "workflow": version.workflow,
        "description": workflow.description,
        "roles": list(workflow.roles),
        "lastUpdateTime": version.commit.time_s * 1000,
    }


def _local_row(store: Store, cwd: str | None, file: LocalFile) -> dict[str, Any]:
    try:
        built = build_local(file, find_used(store, cwd, file.name))
    except BadLocalWorkflow as error:
        row: dict[str, Any] = {"name": file.name, "error": error.why}
    else:
        workflow = parse_workflow(built.node)
        row = {
            "name": file.name,
            "workflow": workflow.hash,
            "description": workflow.description,
            "roles": list(workflow.roles),
            "lastUpdateTime": built.node.timestamp,
        }
    row["file"] = file.path
    shadowed = find_shadowed(store, file.name)
    return row if shadowed is None else {**row, "shadows": shadowed}
