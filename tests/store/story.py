"""A small thread for the tests of the store, commit by commit: start, steps, attempts, end."""

import hashlib
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dulwich.objects import ObjectID
from workflow_file import SOUND, read

from uwf_git.model.builtin import AGENT_CONFIG, ATTEMPT, START, STEP, TEXT, reference
from uwf_git.model.event_folds import Cause, describe_start
from uwf_git.model.event_rules import begin_thread
from uwf_git.model.names import Oid, ThreadId
from uwf_git.model.node import build_node
from uwf_git.model.workflow import build_workflow
from uwf_git.store.git.program import agent_identity, clean_identity
from uwf_git.store.objects.commit import Signing
from uwf_git.store.objects.objects import ObjectStore, get_tree
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, advance_head, archive_head, create_head
from uwf_git.store.threads.history import (
    NewCommit,
    Snapshot,
    build_next,
    read_snapshot,
    read_standing,
    record_next,
    record_start,
)

THREAD = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")
# Its graph goes on as the sound one does, and allows every other way: who tells a story chooses.
_NEVER = '- {to: writer, condition: "false"}\n' + " " * 8
_NEVER += '- {to: checker, condition: "false"}\n' + " " * 8
_NEVER += '- {to: $END, condition: "false"}\n' + " " * 8
_TEXT = SOUND.replace("transitions:\n        - to", "transitions:\n        " + _NEVER + "- to")
WORKFLOW, CLOSURE = build_workflow(read(_TEXT), timestamp=0)
AGENT = build_node(AGENT_CONFIG, {"command": "uwf-mock --reply 'ok'"}, timestamp=0)
COMMITTER = clean_identity("C O Mitter", "committer@example.com")


def signed(now_ms: int, *, author: bytes = COMMITTER) -> Signing:
    """Sign as everybody does in tests."""
    return Signing(author, COMMITTER, now_ms)


class Story:
    """A thread that goes on: each method is one commit."""

    def __init__(self, store: Store, clock: Callable[[], int], thread: ThreadId = THREAD) -> None:
        self.store, self.clock, self.thread = store, clock, thread
        self.head = self._start()

    @property
    def snapshot(self) -> Snapshot:
        """The thread as its newest commit has it."""
        return read_snapshot(self.store, self.head.commit)

    def _start(self) -> Head:
        now = self.clock()
        payload = {
            "workflow": reference(WORKFLOW.hash),
            "prompt": "Write a haiku.",
            "agentBinding": {role: reference(AGENT.hash) for role in WORKFLOW.payload["roles"]},
        }
        start = build_node(START, payload, timestamp=now)
        begun = begin_thread(self.thread, start, WORKFLOW.payload["name"], initial_state=None)
        words = describe_start(start.payload["prompt"])
        transition = NewCommit(begun.record, words, begun.state, (start, WORKFLOW, *CLOSURE, AGENT))
        return create_head(
            self.store, self.thread, record_start(self.store, transition, signed(now))
        )

    def step(self, role: str = "writer", text: str = "An old silent pond", **fields: Any) -> Head:
        """Take a step, and move the head there."""
        self.head = advance_head(self.store, self.head, self.write_step(role, text, **fields))
        return self.head

    def write_step(
        self, role: str, text: str, *, body: str = "", log: str = "", **fields: Any
    ) -> Oid:
        """Write the commit of a step whose agent logged *log*, and move nothing."""
        now = self.clock()
        before = self.snapshot
        content = build_node(TEXT, text, timestamp=now)
        stderr = build_node(TEXT, log, timestamp=now)
        if log:
            fields = {**fields, "stderr": reference(stderr.hash)}
        payload = {
            "role": role,
            "meta": {"ok": True},
            "content": reference(content.hash),
            "agent": reference(AGENT.hash),
            "prev": reference(before.record.node),
            **fields,
        }
        step = build_node(STEP, payload, timestamp=now)
        cause = Cause(step, role, "uwf-mock", text=text, note=body)
        nodes = (step, content, *([stderr] if log else []))
        transition = build_next(read_standing(before), "step", cause, nodes=nodes)
        signing = signed(now, author=agent_identity(role, "uwf-mock"))
        return record_next(self.store, before, transition, signing)

    def attempt(self, message: str = "exit status 1", *, body: str = "", **fields: Any) -> Head:
        """Record a failed try."""
        now = self.clock()
        before, present = self.snapshot, self.snapshot.get_present()
        stderr = build_node(TEXT, body, timestamp=now)
        payload: dict[str, Any] = {
            "role": "writer",
            "agent": reference(AGENT.hash),
            "attempt": present.attempts + 1,
            "error": {"kind": "exit", "message": message},
            **fields,
        }
        if body:
            payload["stderr"] = reference(stderr.hash)
        node = build_node(ATTEMPT, payload, timestamp=now)
        cause = Cause(node, "writer", "uwf-mock", text=body)
        nodes = (node, *([stderr] if body else []))
        transition = build_next(read_standing(before), "attempt", cause, nodes=nodes)
        signing = signed(now, author=agent_identity("writer", "uwf-mock"))
        commit = record_next(self.store, before, transition, signing)
        self.head = advance_head(self.store, self.head, commit)
        return self.head

    def end(self) -> Head:
        """End the thread, and move it to the archive."""
        self.head = archive_head(self.store, self.head, self.write_end())
        return self.head

    def write_end(self) -> Oid:
        """Write the last commit, and move nothing."""
        before = self.snapshot
        transition = build_next(read_standing(before), "end", Cause())
        return record_next(self.store, before, transition, signed(self.clock()))


def tell_small_story(store: Store, clock: Callable[[], int]) -> Story:
    """Write the thread whose object ids are in tests/golden/store/: some of everything."""
    story = Story(store, clock)
    story.step(usage={"tokens": 5}, state={"round": 1})
    story.attempt(body="Traceback:\n\n  no such file\n")
    story.step("checker", "---\nUwf-Status: completed\r\nümläut")
    story.end()
    return story


def list_tree(objects: ObjectStore, tree: ObjectID, prefix: str = "") -> Iterator[str]:
    """List a tree as `git ls-tree -r` does."""
    for entry in get_tree(objects, tree).items():
        path = prefix + entry.path.decode()
        if entry.mode == 0o040000:
            yield from list_tree(objects, entry.sha, path + "/")
        else:
            yield f"{entry.mode:06o} blob {entry.sha.decode()}\t{path}"


def put_raw(store: Store, kind: str, content: bytes) -> ObjectID:
    """Put an object under its right id, whether or not it is one that git would write."""
    raw = f"{kind} {len(content)}\0".encode() + content
    oid = hashlib.sha1(raw, usedforsecurity=False).hexdigest()
    path = Path(store.path, "objects", oid[:2], oid[2:])
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(raw))
    return ObjectID(oid.encode())
