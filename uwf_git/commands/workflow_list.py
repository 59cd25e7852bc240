"""`uwf workflow list`: the registry.

Always true: a damaged workflow is one row that says so, never a failed list.
"""

from typing import Any

from uwf_git.errors import StoreDamaged
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.registry import find_version, get_version_node, list_names
from uwf_git.store.store import Store


def list_workflows(store: Store, *, limit: int | None = None) -> list[dict[str, Any]]:
    """Give a row for each workflow, the one put last first."""
    rows = [_row(store, name) for name in list_names(store)]
    rows.sort(key=lambda row: (-int(row.get("lastUpdateTime", 0)), row["name"]))
    return rows[:limit]


def _row(store: Store, name: str) -> dict[str, Any]:
    try:
        version = find_version(store, name)
        if version is None:
            return {"name": name, "error": "it went away while the list was made"}
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
