"""False and missing nodes: each is reported by its name."""

from collections.abc import Callable
from typing import Any

import pytest
from cas_nodes import NOWHERE, PERSON, TWINS
from commands.forging import Change, also, forge, holds, place
from commands.forging import troubles as all_troubles
from dulwich.objects import Commit
from store.story import CLOSURE, THREAD, WORKFLOW, Story

from uwf_git.commands.verify.history import Finding
from uwf_git.model.builtin import AGENT_CONFIG, META, ROLE, STEP, TEXT, find_reference, reference
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node, build_node
from uwf_git.store.nodes import encode_node
from uwf_git.store.objects.commit import encode_json
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE

REF = ACTIVE + THREAD
OTHER = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4V")
UNNEEDED = " was added, and nothing that the event adds refers to it"


@pytest.fixture
def story(store: Store, clock: Callable[[], int]) -> Story:
    """Return a thread of two steps."""
    story = Story(store, clock)
    story.step()
    story.step("checker", "Good")
    return story


def troubles(store: Store) -> list[Finding]:
    """Verify; without that forged nodes are no part of what the event adds (the first test)."""
    return [each for each in all_troubles(store) if UNNEEDED not in each.message]


def messages(store: Store) -> list[str]:
    return [each.message for each in troubles(store)]


def brings(store: Store, *nodes: Node, name: NodeHash | None = None) -> Change:
    """Add the files of nodes, each under its own name or under another."""
    files: list[Change] = []
    for node in nodes:
        suffix, content = encode_node(node)
        files.append(holds(store, place(name or node.hash, suffix), content))
    return also(*files)


def test_nodes_that_the_event_does_not_need_are_reported(store: Store, story: Story) -> None:
    inner = build_node(META, {"title": "Anything"}, timestamp=0)
    outer = build_node(inner.hash, 1, timestamp=0)
    forge(store, REF, {-1: brings(store, inner, outer)})

    assert [each.message for each in all_troubles(store)] == [
        f"node {name}{UNNEEDED}" for name in sorted((inner.hash, outer.hash))
    ]


def test_node_under_another_name_is_reported(store: Store, story: Story) -> None:
    note = build_node(TEXT, "a note", timestamp=0)
    oids = forge(store, REF, {-1: brings(store, note, name=NOWHERE)})

    (found,) = troubles(store)
    assert found.message == f"node {NOWHERE} holds other content: its name would be {note.hash}"
    assert (found.ref, found.commit, found.node) == (REF, oids[-1], NOWHERE)


GARBAGE = [
    (b"", "cannot be read: Expecting value"),
    (b"{", "cannot be read"),
    (b"\xff", "cannot be read"),
    (b"{}", "it is not an object of type, payload and timestamp"),
    (b"[" * 100_000, "nested too deeply"),
    (
        b'{"type": "'
        + TEXT.encode()
        + b'", "payload": '
        + b"[" * 600
        + b"]" * 600
        + b', "timestamp": 0}',
        "nested",
    ),
    (encode_json({"type": TEXT, "payload": 1, "timestamp": 0}), "holds other content"),
]


@pytest.mark.parametrize(("content", "told"), GARBAGE, ids=[told for _, told in GARBAGE])
def test_file_that_is_no_node_is_reported(
    content: bytes, told: str, store: Store, story: Story
) -> None:
    forge(store, REF, {-1: holds(store, place(NOWHERE), content)})

    (found,) = troubles(store)
    assert found.message.startswith(f"node {NOWHERE} ")
    assert told in found.message


def test_payload_of_500_levels_is_no_trouble(store: Store, story: Story) -> None:
    deep: Any = 1
    for _level in range(499):
        deep = [deep]
    schema = build_node(META, {"title": "Anything"}, timestamp=0)
    forge(store, REF, {-1: brings(store, build_node(schema.hash, deep, timestamp=0), schema)})

    assert messages(store) == []


@pytest.mark.parametrize(
    ("type_", "told"),
    [
        (STEP, "says that it is a StepNode, and is not"),
        (NOWHERE, f"refers to its type {NOWHERE}, which is not in the same commit"),
        (WORKFLOW.hash, f"has the type {WORKFLOW.hash}, which is no schema"),
    ],
)
def test_node_that_is_not_of_its_type_is_reported(
    type_: NodeHash, told: str, store: Store, story: Story
) -> None:
    lone = build_node(type_, {"role": "writer"}, timestamp=0)
    forge(store, REF, {-1: brings(store, lone)})

    assert messages(store) == [f"node {lone.hash} {told}"]


def test_reference_to_another_kind_of_node_is_reported(store: Store, story: Story) -> None:
    head = story.snapshot.get_head_node()
    wrong = {"content": reference(WORKFLOW.hash), "agent": reference(WORKFLOW.hash)}
    step = build_node(STEP, {**head.payload, **wrong}, timestamp=0)
    role = {"name": "r", "description": "", "systemPrompt": "", "outputSchema": wrong["agent"]}
    role_node = build_node(ROLE, role, timestamp=0)
    forge(store, REF, {-1: brings(store, step, role_node)})

    told = f"refers to {WORKFLOW.hash} where a node of type"
    assert set(messages(store)) == {
        f"node {step.hash} {told} Text belongs",
        f"node {step.hash} {told} AgentConfig belongs",
        f"node {role_node.hash} {told} JSON Schema belongs",
    }


def test_node_that_is_right_in_one_field_may_be_wrong_in_another(
    store: Store, story: Story
) -> None:
    head = story.snapshot.get_head_node().payload
    agent = find_reference(head["agent"])
    step = build_node(STEP, {**head, "content": head["agent"]}, timestamp=0)
    forge(store, REF, {-1: brings(store, step)})

    told = f"node {step.hash} refers to {agent} where a node of type Text belongs"
    assert messages(store) == [told]


def test_payload_that_breaks_its_schema_is_reported_with_the_place(
    store: Store, story: Story
) -> None:
    person = build_node(META, PERSON, timestamp=0)
    wrong = build_node(person.hash, {"name": 5, "friend": NOWHERE}, timestamp=0)
    oids = forge(store, REF, {-1: brings(store, person, wrong)})

    found = troubles(store)
    assert [(each.message, each.path) for each in found] == [
        (f"node {wrong.hash} refers to {NOWHERE}, which is not in the same commit", None),
        (f"node {wrong.hash} breaks its schema at name: 5 is not of type 'string'", "name"),
    ]
    assert {each.commit for each in found} == {oids[-1]}


def test_invalid_schema_is_reported(store: Store, story: Story) -> None:
    wrong = build_node(META, {"type": "strig"}, timestamp=0)
    own = build_node(META, {"properties": {"a": {"$ref": "#/nowhere"}}}, timestamp=0)
    forge(store, REF, {-1: brings(store, wrong, own)})

    told = {each.node: each.message for each in troubles(store)}
    assert told.keys() == {wrong.hash, own.hash}
    assert "'strig'" in told[wrong.hash]
    assert "leads nowhere" in told[own.hash]


def test_references_that_patterns_find_are_looked_for_behind_the_fence(
    store: Store, story: Story
) -> None:
    schema = build_node(
        META, {"patternProperties": {"^(a+)+$": {"format": "cas_ref"}}}, timestamp=0
    )
    lone = build_node(schema.hash, {"aa": NOWHERE}, timestamp=0)
    slow = build_node(schema.hash, {"a" * 100 + "b": NOWHERE}, timestamp=0)
    forge(store, REF, {-1: brings(store, schema, lone)})
    told = f"node {lone.hash} refers to {NOWHERE}, which is not in the same commit"
    assert messages(store) == [told]

    forge(store, REF, {-1: brings(store, slow)})
    assert any(f"{slow.hash} cannot be checked against schema" in each for each in messages(store))


def test_meta_that_breaks_its_roles_schema_is_reported(
    store: Store, clock: Callable[[], int]
) -> None:
    story = Story(store, clock)
    story.step("checker", meta={"ok": 5})

    (found,) = troubles(store)
    assert found.node == story.snapshot.record.node
    assert found.path == "meta.ok"
    assert "breaks its schema at meta.ok: 5 is not of type 'boolean'" in found.message


def test_role_that_the_workflow_has_not_is_reported(store: Store, clock: Callable[[], int]) -> None:
    Story(store, clock).step("stranger")

    assert messages(store) == ["Uwf-Role is 'stranger', which is no role of the workflow"]


def test_two_payloads_of_one_name_are_reported_with_both_refs(
    store: Store, clock: Callable[[], int]
) -> None:
    one, other = Story(store, clock), Story(store, clock, OTHER)
    Story(store, clock, ThreadId("01J00000000000000000000001")).step()
    one.step(text=TWINS[0])
    other.step(text=TWINS[1])

    (found,) = troubles(store)
    name = build_node(TEXT, TWINS[0], timestamp=0).hash
    assert found.node == name
    assert found.ref == ACTIVE + OTHER
    assert REF in found.message
    assert found.message.startswith(f"node {name} has two payloads")


def test_node_that_was_written_at_two_times_is_one(store: Store, clock: Callable[[], int]) -> None:
    Story(store, clock).step(text="the same")
    Story(store, clock, OTHER).step(text="the same")

    assert messages(store) == []


def test_same_name_in_both_forms_is_reported(store: Store, story: Story) -> None:
    note = build_node(TEXT, "a note", timestamp=0)
    as_json = encode_json({"type": TEXT, "payload": "a note", "timestamp": 0})
    path = place(note.hash)
    forge(store, REF, {-1: also(brings(store, note), holds(store, path, as_json))})

    assert f"{path} is there a second time, as {path.rpartition('/')[2][:-5]}.md" in messages(store)


def test_suffix_that_is_not_of_the_form_is_reported(store: Store, story: Story) -> None:
    note = build_node(TEXT, "a note", timestamp=0)
    person = build_node(META, PERSON, timestamp=0)
    wrong = also(
        holds(store, place(note.hash, ".json"), encode_node(note)[1]),
        holds(store, place(person.hash, ".md"), encode_node(person)[1]),
    )
    forge(store, REF, {-1: wrong})

    assert sorted(messages(store)) == sorted(
        f"{path} has the wrong suffix for what it holds"
        for path in (place(note.hash), place(person.hash, ".md"))
    )


def test_consequences_of_a_damaged_node_are_not_reported_as_well(
    store: Store, story: Story
) -> None:
    """The workflow cannot be read: checks that need it report no problem of the thread."""
    spoiled: dict[int, Callable[[Commit], None]] = {
        number: holds(store, place(WORKFLOW.hash), b"{}") for number in range(3)
    }
    forge(store, REF, spoiled)

    assert [each.node for each in troubles(store)] == [WORKFLOW.hash]
    assert AGENT_CONFIG not in {node.hash for node in CLOSURE if node.type != META}
