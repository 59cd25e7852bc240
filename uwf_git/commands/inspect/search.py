"""`uwf search`: find a pattern in the prompts, metas and contents of threads, newest thread first.

A step that forks share is searched once, and listed under the thread that took it, or, if that
thread is not searched, under its newest fork. A step of a branch is listed under the branch alone.
A damaged thread has a row that says so.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from uwf_git.commands.inspect.list import name_damage, walk_threads
from uwf_git.commands.inspect.step_view import get_text
from uwf_git.engine.diff import render_path
from uwf_git.engine.text_search import find_in, walk_texts
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import START, STEP
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node
from uwf_git.model.references import find_reference
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.snapshot import Snapshot, check_type, read_snapshot


class SearchRequest(NamedTuple):
    pattern: re.Pattern[str]
    workflow: str | None = None

    role: str | None = None

    archived: bool = True

    secrets: tuple[str, ...] = ()
    """Texts to mask in the excerpts."""


def search_threads(store: Store, request: SearchRequest) -> Iterator[dict[str, Any]]:
    return _Search(store, request).rows()


class _Stretch(NamedTuple):
    thread: ThreadId
    tip: Snapshot

    is_joined: bool = False
    """The steps are of a branch that was joined: they all get the number of the join's step."""


class _Search:
    def __init__(self, store: Store, request: SearchRequest) -> None:
        self._store, self._request = store, request
        self._seen: set[NodeHash] = set()
        self._damaged: set[ThreadId] = set()
        # The steps before forks, and of branches: most belong to a thread that is searched later.
        self._behind: list[_Stretch] = []

    def rows(self) -> Iterator[dict[str, Any]]:
        for thread in walk_threads(self._store, archived=self._request.archived):
            yield from self._catch_damage(thread, self._search(thread))
        # Branches of branches are added on the way.
        for stretch in self._behind:
            yield from self._catch_damage(stretch.thread, self._search_behind(stretch))

    def _catch_damage(
        self, thread: ThreadId, rows: Iterator[dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        try:
            yield from rows
        except StoreDamaged as error:
            if thread not in self._damaged:
                self._damaged.add(thread)
                yield {"thread": thread, "status": name_damage(error), "error": error.message}

    def _search(self, thread: ThreadId) -> Iterator[dict[str, Any]]:
        head = find_head(self._store, thread)
        if head is None:
            # Its ref was removed in the meantime.
            return
        tip = read_snapshot(self._store, head.commit)
        names = {tip.record.workflow, tip.record.workflow_name}
        if self._request.workflow is not None and self._request.workflow not in names:
            return
        shared = _count_shared(self._store, tip)
        depth = tip.record.depth
        for node in tip.walk_chain():
            if shared is not None and depth <= shared:
                record = tip.record._replace(node=node.hash, depth=depth)
                self._behind.append(_Stretch(thread, tip._replace(record=record)))
                return
            self._seen.add(node.hash)
            yield from self._look(thread, depth, node, tip)
            depth -= 1

    def _search_behind(self, stretch: _Stretch) -> Iterator[dict[str, Any]]:
        depth = stretch.tip.record.depth
        for node in stretch.tip.walk_chain():
            if node.hash in self._seen:
                return
            self._seen.add(node.hash)
            yield from self._look(stretch.thread, depth, node, stretch.tip)
            depth -= not stretch.is_joined

    def _look(
        self, thread: ThreadId, depth: int, node: Node, tip: Snapshot
    ) -> Iterator[dict[str, Any]]:
        role = None if node.type == START else check_type(node, STEP).payload["role"]
        if self._request.role not in {None, role}:
            return
        if _is_told_elsewhere(node) or self._repeats_prompt(node, tip):
            self._behind += _list_joined(thread, depth, node, tip)
            return
        for field, text in _texts(node, tip):
            found = find_in(self._request.pattern, text, self._request.secrets)
            if found is not None:
                yield {
                    "thread": thread,
                    "step": depth,
                    "role": role,
                    "field": field,
                    "excerpt": found.excerpt,
                    "hits": found.hits,
                }

    def _repeats_prompt(self, node: Node, tip: Snapshot) -> bool:
        """Check for a workflow within a workflow that was given the prompt of its thread."""
        if node.type != START or "parent" not in node.payload or self._request.workflow:
            # Of one workflow its thread may not be searched.
            return False
        trunk = tip.get_trunk()
        head = None if trunk is None else find_head(self._store, trunk)
        above = tip if head is None else read_snapshot(self._store, head.commit)
        start = above.get_start()
        return start.hash != node.hash and bool(start.payload["prompt"] == node.payload["prompt"])


def _is_told_elsewhere(node: Node) -> bool:
    """Check for a branch's prompt or a join's contents, which repeat other nodes."""
    return ("entry" if node.type == START else "branches") in node.payload


def _list_joined(thread: ThreadId, depth: int, node: Node, tip: Snapshot) -> Iterator[_Stretch]:
    """Yield the branches of a join; branches that are here are searched by themselves."""
    for reference in node.payload.get("branches", ()) if node.type != START else ():
        head = find_reference(reference)
        if head is not None:
            record = tip.record._replace(node=head, depth=depth)
            yield _Stretch(thread, tip._replace(record=record), is_joined=True)


def _texts(node: Node, tip: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield the texts of a node, each with the name of its place."""
    if node.type == START:
        yield "prompt", node.payload["prompt"]
        return
    for path, text in walk_texts(node.payload["meta"]):
        yield render_path(("meta", *path)), text
    yield "content", get_text(tip, node.payload.get("content"))


def _count_shared(store: Store, tip: Snapshot) -> int | None:
    """Return how many steps a fork still shares with its origin; None for no fork."""
    fewest = tip.record.depth
    event = None
    for snapshot in walk_history(store, tip.commit.oid):
        fewest = min(fewest, snapshot.record.depth)
        event = snapshot.record.event
    return fewest if event == "fork" else None
