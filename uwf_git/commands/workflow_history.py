"""`uwf workflow history`: the versions of a workflow, newest first.

Owns: the rows: when, who, why, and what changed. Always true: a version that cannot be read is a
row that says so; it never hides those that can.
"""

from collections.abc import Iterator
from typing import Any

from uwf_git.commands.workflow_changes import Contents, compare_versions
from uwf_git.commands.workflow_show import describe_workflow
from uwf_git.commands.workflow_version import get_newest
from uwf_git.errors import StoreDamaged
from uwf_git.model.closure import walk_closure
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.message import body_of
from uwf_git.store.registry import ROLLBACK, Version, get_version_node, walk_versions
from uwf_git.store.store import Store
from uwf_git.store.workflow_tree import read_sources


def list_history(store: Store, name: str, *, limit: int | None = None) -> list[dict[str, Any]]:
    """Give a row for each version of the workflow *name*, a removal too, the newest first.

    Raises:
        NoSuchWorkflow: none is named so. (One that was removed has its history.)
        DamagedCommit, BadMessage: its newest commit is none of ours.
    """
    newest = get_newest(store, name)
    versions, damage = _read(store, newest)
    asked = len(versions) if limit is None else min(limit, len(versions))
    # One more than is asked for: a row tells what differs from the version before.
    contents = [_read_contents(store, version) for version in versions[: asked + 1]]
    rows = [_row(versions, contents, at) for at in range(asked)]
    if damage is not None:
        rows.append({"error": damage})
    return rows[:limit]


def _read(store: Store, newest: Version) -> tuple[list[Version], str | None]:
    """Give the versions down to the first, or to where the history breaks off, and why."""
    versions: list[Version] = []
    try:
        for version in walk_versions(store, newest):
            versions.append(version)  # noqa: PERF402 (those before a damaged one are to stay)
    except StoreDamaged as error:
        return versions, error.message
    return versions, None


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
    reason = body_of(commit.message)
    if reason:
        row["reason"] = reason
    if version.event == ROLLBACK:
        restored = _restored(versions, at)
        if restored is not None:
            row["restored"] = restored
    if isinstance(content, StoreDamaged):
        return {**row, "error": content.message}
    before = contents[at + 1] if at + 1 < len(contents) else None
    if isinstance(before, Contents):
        row["changes"] = [each._asdict() for each in compare_versions(before, content)]
    return row


def _restored(versions: list[Version], at: int) -> str | None:
    """Give the commit of the version that a rollback brought back: the newest that is the same."""
    tree = versions[at].commit.tree
    return next(
        (
            each.commit.oid
            for each in versions[at + 1 :]
            if each.commit.tree == tree and not each.is_removed
        ),
        None,
    )


def _read_contents(store: Store, version: Version) -> Contents | StoreDamaged:
    try:
        closure = tuple(_closure(store, version))
        described = describe_workflow(parse_workflow(closure[0]), closure)
        return Contents(described, read_sources(store.objects, version.commit))
    except StoreDamaged as error:
        return error


def _closure(store: Store, version: Version) -> Iterator[Any]:
    return walk_closure([version.workflow], lambda name: get_version_node(store, version, name))
