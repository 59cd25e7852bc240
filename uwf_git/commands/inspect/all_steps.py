"""Every step of a thread, and inside a join the steps of the branches that it joined."""

from typing import Any

from uwf_git.commands.inspect.list import DAMAGED, UNREADABLE
from uwf_git.commands.inspect.step_view import view_steps
from uwf_git.commands.inspect.story import count_failed, view_files_of
from uwf_git.commands.split.commits import (
    Container,
    find_container,
    label_begun_branch,
)
from uwf_git.model.event_words import first_line
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.snapshot import Snapshot, find_newest_step, read_at, read_snapshot


def view_all_steps(store: Store, tip: Snapshot) -> list[dict[str, Any]]:
    """Return the documents of all steps, oldest first; joins with ``branches``."""
    history = walk_history(store, tip.commit.oid, through_forks=True)
    # After a poke an equal step has the same node; the newest, here the last, counts.
    taken = list(count_failed(history))[::-1]
    failed = {each.record.node: count for each, count in taken}
    named = {each.record.node: each.record.files for each, _ in taken if each.record.files}
    files = view_files_of(store, tip.record.thread, list(named.values())) if named else {}
    joins = {each.record.node: each for each, _ in taken if each.record.event == "join"}
    steps: list[dict[str, Any]] = []
    for view in view_steps(tip):
        step = {**view, "failedAttempts": failed.get(view["hash"], 0)}
        if view["hash"] in named:
            step["files"] = files[named[view["hash"]]]
        if view["hash"] in joins:
            step["branches"] = _view_joined(store, joins[view["hash"]])
        steps.append(step)
    return steps


def add_steps(store: Store, rows: list[dict[str, Any]]) -> None:
    """Add to each row of ``view_branches`` the steps of that branch, and of its own branches."""
    for row in rows:
        head = find_head(store, row["thread"])
        if head is not None and row["status"] not in {DAMAGED, UNREADABLE}:
            row["steps"] = view_all_steps(store, read_snapshot(store, head.commit))
        add_steps(store, row.get("branches", []))


def view_given_up(tip: Snapshot) -> list[dict[str, Any]]:
    """Return the branches that the join at *tip* goes on without, each with ``error``."""
    join = find_newest_step(tip)
    if join.record.event != "join":
        return []
    container, _ = _read_joined(join)
    return [
        {**_view_branch(container, number, each), "error": tell_given_up(each)}
        for number, each in find_given_up(join).items()
    ]


def find_given_up(join: Snapshot) -> dict[int, Snapshot]:
    """Return the branches, by number, that *join* goes on without; {} if one branch was enough."""
    container, tips = _read_joined(join)
    killed = {number: tip for number, tip in enumerate(tips) if tip.record.status == "killed"}
    return {} if container.policy.get("join") == "any" else killed


def tell_given_up(tip: Snapshot) -> str:
    return first_line(tip.body) or "killed"


def _view_joined(store: Store, join: Snapshot) -> list[dict[str, Any]]:
    container, tips = _read_joined(join)
    return [
        {**_view_branch(container, number, tip), "steps": view_all_steps(store, tip)}
        for number, tip in enumerate(tips)
    ]


def _read_joined(join: Snapshot) -> tuple[Container, list[Snapshot]]:
    before, *tips = (read_at(join.objects, oid) for oid in join.commit.parents)
    return find_container(before, join.record.at or ""), tips


def _view_branch(container: Container, number: int, tip: Snapshot) -> dict[str, Any]:
    return {
        "number": number,
        "label": label_begun_branch(container, number, tip),
        "thread": tip.record.thread,
        "status": tip.record.status,
        "depth": tip.record.depth,
    }
