"""Damaged stores: each broken object is reported by its id, and hides nothing else."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dulwich.objects import Blob, ObjectID, ShaFile, Tree
from refusing import refuses
from store.small_packs import damage, loose_file, loosen
from store.story import THREAD, WORKFLOW, Story, signed, tell_small_story

from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import STEP, TEXT, reference
from uwf_git.model.names import Oid, ThreadId
from uwf_git.model.node import Node, build_node
from uwf_git.store.lookup import NodeLookup, NoSuchNode
from uwf_git.store.nodes import DamagedNode, MissingNode, add_nodes, encode_node
from uwf_git.store.objects.commit import (
    BadMessage,
    CommitDraft,
    encode_json,
    read_commit,
    write_commit,
)
from uwf_git.store.objects.objects import get_tree
from uwf_git.store.refs import BadRef
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import ACTIVE, Head, get_head, list_threads
from uwf_git.store.threads.history import Snapshot, read_snapshot, walk_history

OTHER = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4V")


def read_all(store: Store, thread: ThreadId) -> list[Any]:
    """Read everything that a thread has."""
    seen: list[Any] = []
    for snapshot in walk_history(store, get_head(store, thread).commit):
        seen += [snapshot.subject, snapshot.body, snapshot.get_present(), snapshot.get_start()]
        chain = list(snapshot.walk_chain())
        seen += chain
        for node in chain:
            for name in ("content", "agent"):
                if name in node.payload:
                    seen.append(snapshot.get_node(node.payload[name]["$ref"]))
        seen.append(snapshot.get_node(snapshot.get_present().workflow))
    return seen


def reached(store: Store, head: Oid) -> Iterator[ObjectID]:
    """Return every object that the commit *head* needs, its parents' trees aside."""
    waiting = [read_commit(store.objects, head).tree]
    yield ObjectID(head.encode())
    while waiting:
        oid = waiting.pop()
        yield oid
        obj = store.objects[oid]
        if isinstance(obj, Tree):
            waiting += [entry.sha for entry in obj.items()]


@pytest.mark.parametrize("how", ["missing", "empty", "flipped", "cut", "another"])
def test_each_object_of_a_thread_is_missed_when_it_is_damaged(
    store: Store, clock: Callable[[], int], how: str
) -> None:
    tell_small_story(store, clock)
    whole = read_all(store, THREAD)
    loosen(store)
    noticed = 0
    for oid in sorted(set(reached(store, get_head(store, THREAD).commit))):
        path = loose_file(store, oid)
        content = path.read_bytes()
        spoil(path, content, how)
        told = what_reading_tells(store)
        assert told == whole or oid_or_node_in(str(told), oid)
        noticed += told != whole
        path.unlink(missing_ok=True)
        path.write_bytes(content)
    # Of the closure only what the reading above touches is read.
    assert noticed > 20
    assert read_all(store, THREAD) == whole


def spoil(path: Path, content: bytes, how: str) -> None:
    path.unlink()
    if how != "missing":
        flipped = content[:-10] + bytes([content[-10] ^ 0xFF]) + content[-9:]
        another = Blob.from_string(b"another").as_legacy_object()
        spoiled = {"empty": b"", "flipped": flipped, "cut": content[:-10], "another": another}
        path.write_bytes(spoiled[how])


def what_reading_tells(store: Store) -> list[Any] | str:
    try:
        return read_all(open_store(store.path), THREAD)
    except StoreDamaged as error:
        return f"{error.code}: {error.message}"


def oid_or_node_in(told: str, oid: bytes) -> bool:
    """Check whether the object is named by its id, or as the commit or the node that it was."""
    return oid.decode() in told or told.startswith(("damaged-commit: commit ", "missing-node: "))


def rewritten(
    story: Story, change: Callable[[Tree, list[ShaFile]], None], *, message: bytes | None = None
) -> Snapshot:
    """Write the head of a story again with another tree, and move the thread there."""
    objects = story.store.objects
    commit = read_commit(objects, story.head.commit)
    tree, added = Tree(), list[ShaFile]()
    for entry in get_tree(objects, commit.tree).items():
        tree[entry.path] = (entry.mode, entry.sha)
    change(tree, added)
    draft = CommitDraft(tree, (commit,), commit.message if message is None else message, added)
    oid = write_commit(objects, draft, signed(story.clock()))
    story.store.refs.advance(ACTIVE + THREAD, seen=story.head.commit, to=oid)
    story.head = Head(THREAD, oid, archived=False)
    return read_snapshot(story.store, oid)


def with_file(name: str, content: bytes) -> Callable[[Tree, list[ShaFile]], None]:
    def change(tree: Tree, added: list[ShaFile]) -> None:
        blob = Blob.from_string(content)
        added.append(blob)
        tree[name.encode()] = (0o100644, blob.id)

    return change


def without(name: str) -> Callable[[Tree, list[ShaFile]], None]:
    def change(tree: Tree, _added: list[ShaFile]) -> None:
        del tree[name.encode()]

    return change


GARBAGE = [
    b"",
    b"{",
    b"\xff\xfe",
    b"null",
    b"[]",
    b"{}",
    b"NaN",
    b"[" * 100_000,
    b'{"workflow": 1}',
    b'{"state": "\\ud800"}',
    b"1" * 10_000,
]


@pytest.mark.parametrize("content", GARBAGE, ids=lambda content: repr(content[:20]))
def test_invalid_now_json_names_its_commit(story: Story, content: bytes) -> None:
    snapshot = rewritten(story, with_file("now.json", content))
    with refuses("damaged-commit", status=5) as caught:
        snapshot.get_present()
    assert snapshot.commit.oid in caught.value.message
    assert "now.json" in caught.value.message


def test_a_present_with_a_text_that_nothing_can_print_is_damage(story: Story) -> None:
    document = {**story.snapshot.get_present().as_document(), "state": {"a": "SURROGATE"}}
    content = encode_json(document).replace(b"SURROGATE", b"\\ud800")
    snapshot = rewritten(story, with_file("now.json", content))
    with refuses("damaged-commit", match="lone surrogate"):
        snapshot.get_present()


@pytest.mark.parametrize("content", GARBAGE, ids=lambda content: repr(content[:20]))
def test_invalid_start_json_names_its_commit(story: Story, content: bytes) -> None:
    snapshot = rewritten(story, with_file("start.json", content))
    with refuses("damaged-commit", match=rf"{snapshot.commit.oid} has a start\.json that is not"):
        snapshot.get_start()


def test_start_json_of_another_type_is_damage(story: Story) -> None:
    snapshot = rewritten(story, with_file("start.json", encode_node(WORKFLOW)[1]))
    with refuses("damaged-commit", match=r"start\.json that is not a StartNode"):
        snapshot.get_start()


@pytest.mark.parametrize("name", ["now.json", "start.json", "nodes"])
def test_missing_part_is_damage(story: Story, name: str) -> None:
    snapshot = rewritten(story, without(name))
    with refuses("damaged-commit") as caught:
        assert [snapshot.get_present(), snapshot.get_start(), snapshot.get_head_node()]
    assert f"{snapshot.commit.oid} has no {name}" in caught.value.message


def test_nodes_as_a_file_is_damage(story: Story) -> None:
    snapshot = rewritten(story, with_file("nodes", b"a file"))
    with refuses("damaged-object", match="is not a tree"):
        snapshot.get_head_node()


def test_node_under_another_name_is_damage(story: Story) -> None:
    head, workflow = story.snapshot.record.node, encode_node(WORKFLOW)[1]

    def change(tree: Tree, added: list[ShaFile]) -> None:
        leaf, inner, outer, blob = Tree(), Tree(), Tree(), Blob.from_string(workflow)
        leaf[f"{head[2:]}.json".encode()] = (0o100644, blob.id)
        inner[head[1].encode()] = (0o040000, leaf.id)
        outer[head[0].encode()] = (0o040000, inner.id)
        tree[b"nodes"] = (0o040000, outer.id)
        added += [blob, leaf, inner, outer]

    snapshot = rewritten(story, change)
    with pytest.raises(DamagedNode, match=f"{head} holds other content"):
        snapshot.get_head_node()


def grown(story: Story, *nodes: Node, depth: int = 0) -> Snapshot:
    """Add nodes to the tree of a thread, and make the first of them its head."""

    def change(tree: Tree, added: list[ShaFile]) -> None:
        growth = add_nodes(story.store.objects, tree[b"nodes"][1], nodes)
        tree[b"nodes"] = (0o040000, growth.nodes)
        added += growth.objects

    old = story.snapshot.record.node.encode()
    message = story.snapshot.commit.message.replace(old, nodes[0].hash.encode())
    message = message.replace(b"Uwf-Depth: 0", b"Uwf-Depth: %d" % depth)
    return rewritten(story, change, message=message)


@pytest.mark.parametrize("prev", [None, "0000000000000", "text"])
def test_broken_chain_is_damage(story: Story, prev: str | None) -> None:
    text = build_node(TEXT, "no step", timestamp=0)
    target = text.hash if prev == "text" else prev or "1234567890ABC"
    payload = {
        "role": "writer",
        "meta": {},
        "content": reference(text.hash),
        "agent": reference(text.hash),
        "prev": {"$ref": target},
    }
    snapshot = grown(story, build_node(STEP, payload, timestamp=0), text)
    with refuses(MissingNode, "damaged-commit", match=target):
        list(snapshot.walk_chain())


@pytest.mark.parametrize("payload", [None, [], "text", {"role": "writer"}, {"prev": 5}])
def test_chain_through_another_type_names_the_node(story: Story, payload: Any) -> None:
    step = build_node(STEP, payload, timestamp=0)
    snapshot = grown(story, step)
    with pytest.raises(DamagedNode, match=f"{step.hash} says that it is a StepNode, and is not"):
        list(snapshot.walk_chain())


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"writer: done\n",
        b"writer: done\n\nUwf-Status: completed\n",
        b"writer: done\n\n\0\n",
        b"writer: done\n\nSigned-off-by: Mallory <m@example.com>\n",
    ],
)
def test_foreign_message_names_its_commit(store: Store, story: Story, message: bytes) -> None:
    with refuses(BadMessage, status=5) as caught:
        rewritten(story, lambda _tree, _added: None, message=message)
    assert get_head(store, THREAD).commit in caught.value.message


@pytest.mark.parametrize("content", [b"", b"1" * 40 + b"\n", b"ref: refs/heads/main\n"])
def test_a_thread_whose_ref_is_broken_does_not_hide_the_others(
    store: Store, clock: Callable[[], int], content: bytes
) -> None:
    broken, whole = Story(store, clock), Story(store, clock, OTHER)
    whole.step()
    Path(f"{store.path}/{ACTIVE}{THREAD}").write_bytes(content)
    assert list_threads(store, archived=False) == [OTHER, THREAD]
    with refuses(BadRef, "damaged-commit"):
        read_snapshot(store, get_head(store, THREAD).commit)
    step = whole.snapshot.get_head_node()
    assert NodeLookup(store).get(step.hash) == step
    assert NodeLookup(store).resolve(step.hash[:10]) == step.hash
    assert broken.thread != whole.thread


@pytest.mark.parametrize("part", ["nodes", "outer", "blob"])
def test_a_thread_whose_nodes_are_broken_does_not_hide_the_others(
    store: Store, clock: Callable[[], int], part: str
) -> None:
    """The newest is searched first, and it is the broken one."""
    whole, broken = Story(store, clock), Story(store, clock, OTHER)
    whole.step(text="only here")
    broken.step(text="only there")
    step, lost = whole.snapshot.get_head_node(), broken.snapshot.get_head_node()
    loosen(store)
    damage(loose_file(store, oid_of(broken.snapshot, lost, part)), b"")
    store = open_store(store.path)
    assert NodeLookup(store).get(step.hash) == step
    assert NodeLookup(store).resolve(step.hash[:10]) == step.hash
    with pytest.raises(StoreDamaged):
        NodeLookup(store).get(lost.hash)


def oid_of(snapshot: Snapshot, node: Node, part: str) -> ObjectID:
    oid = snapshot.nodes
    steps = {
        "nodes": [],
        "outer": [node.hash[0]],
        "blob": [*node.hash[:2], f"{node.hash[2:]}.json"],
    }
    for name in steps[part]:
        oid = get_tree(snapshot.objects, oid)[name.encode()][1]
    return oid


def test_unknown_node_is_no_damage(store: Store, story: Story) -> None:
    nobody = build_node(TEXT, "nobody has this", timestamp=0).hash
    with pytest.raises(NoSuchNode, match=nobody):
        NodeLookup(store).get(nobody)


@pytest.mark.parametrize("name", ["start.json", "nodes"])
def test_nothing_is_added_to_a_thread_that_has_lost_a_part(
    store: Store, story: Story, name: str
) -> None:
    story.step()
    damaged = rewritten(story, without(name))
    with refuses("damaged-commit", match=f"{damaged.commit.oid} has no {name}"):
        story.step(text="more")
    assert get_head(store, THREAD).commit == damaged.commit.oid
