from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from flow_trees import AGENT, Tree, as_flow
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses
from workflow_file import SOUND, read, spoiled

from uwf_git.model.definition.definition import InvalidWorkflow, Surroundings
from uwf_git.model.definition.flow_fields import KEYS, kinds_with
from uwf_git.model.definition.source import Target, find_target, read_flow_addition
from uwf_git.model.flow import HOLDING, KINDS
from uwf_git.model.workflow import END, START, Transition
from uwf_git.model.yaml_reader import parse_yaml

GRAPH = {
    START: (Transition("writer", None),),
    "writer": (Transition("checker", None),),
    "checker": (Transition("writer", "meta.ok = false"), Transition(END, None)),
}
HEAD = SOUND[: SOUND.index("moderator:")]
FLAT = """\
moderator:
  - {from: __START__, to: writer, when: null}
  - {from: writer, to: checker, when: null}
  - {from: checker, to: writer, when: "meta.ok = false"}
  - {from: checker, to: __END__, when: null}
"""


def test_entries_of_the_newest_seed_are_read() -> None:
    assert read(SOUND).graph == GRAPH


def test_flat_list_of_the_older_seed_is_read() -> None:
    assert read(HEAD + FLAT).graph == GRAPH


@pytest.mark.parametrize(("start", "end"), [("__start__", "__end__"), ("__START__", "__END__")])
def test_every_spelling_of_the_ends_is_stored_alike(start: str, end: str) -> None:
    assert read(SOUND.replace("$START", start).replace("$END", end)).graph == GRAPH


def test_when_and_condition_are_one_in_either_form() -> None:
    assert read(SOUND.replace("condition:", "when:")).graph == GRAPH
    assert read(HEAD + FLAT.replace("when:", "condition:")).graph == GRAPH


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ("meta.okay = false and depth < 6", "okay"),
        ("$not(meta.OK)", "OK"),
        ("history[meta.okay] and (meta.okay)", "okay"),
        ("okay = false", "okay"),
        ("meta.ok = False", "False"),
        ("meta.ok = “ok”", "“ok”"),
        ("$map(history, function($each) { $each.okay and okay })", "okay"),
        ("startTime - iteration > depth and [history.role]{role: x} and 'x' in prompt", None),
        ("history[role = 'a' or role = 'checker'].meta.x", None),
        ("state.meta.x or history[meta.x] or state[meta.x] or 'meta.x' = meta.ok", None),
    ],
)
def test_warning_of_a_member_that_no_answer_has(condition: str, named: str | None) -> None:
    found = read(spoiled("meta.ok = false", f'"{condition}"')).warnings
    assert [(each.line, each.path) for each in found] == [
        (17, "moderator.graph[2].transitions[0]") for _ in range(named is not None)
    ]
    assert all(repr(named) in each.message for each in found)


@pytest.mark.parametrize(
    "schema",
    [
        "{properties: {ok: {$ref: '#/$defs/x'}}, $defs: {x: true}, additionalProperties: false}",
        "{allOf: [{properties: {ok: {}}}]}",
    ],
)
def test_member_is_known_by_any_closed_schema(schema: str) -> None:
    text = SOUND.replace("{type: object, properties: {ok: {type: boolean}}}", schema)
    told = [each.message for each in read(text.replace("meta.ok", "meta.okay")).warnings]
    assert told == ["the outputSchema of checker has no 'okay'; did you mean 'ok'?"]


@pytest.mark.parametrize("index", ["", "[0]", "[-1]"])
def test_condition_of_a_graph_may_ask_the_history_for_what_was_answered(index: str) -> None:
    text = f"""\
name: x
roles:
  a: {{outputSchema: {{type: object, properties: {{ok: {{type: boolean}}}}}}}}
  b: {{}}
moderator:
  graph:
    - {{from: $START, transitions: [{{to: a}}]}}
    - {{from: a, transitions: [{{to: b}}]}}
    - from: b
      transitions:
        - {{to: a, condition: 'history[role = "a"]{index}.meta.okay and depth < 4'}}
        - {{to: $END}}
"""

    assert [(each.line, each.path, each.message) for each in read(text).warnings] == [
        (
            *(11, "moderator.graph[2].transitions[0]"),
            "the outputSchema of a has no 'okay'; did you mean 'ok'?",
        )
    ]


ROLES = "abcd"


def workflow(ways: Mapping[str, Sequence[str]]) -> str:
    """Write a workflow with roles a to d and these conditional transitions, flat, from line 3."""
    lines = ["name: x", "roles: {a: {}, b: {}, c: {}, d: {}}", "moderator:"]
    lines += [
        f"- {{from: {source}, to: {to}, when: meta.go}}" for source in ways for to in ways[source]
    ]
    return "\n".join(lines)


def reachable(ways: Mapping[str, Sequence[str]], source: str) -> set[str]:
    """Return what can be reached, by growing the set until it stays the same: slow and simple."""
    reached = {source}
    while True:
        grown = reached | {to for name in reached for to in ways.get(name, ())}
        if grown == reached:
            return reached
        reached = grown


@given(
    st.dictionaries(
        st.sampled_from(["$START", *ROLES]),
        st.lists(st.sampled_from([*ROLES, "$END"]), min_size=1, max_size=3, unique=True),
        min_size=1,
    )
)
def test_sound_means_that_every_role_is_reached_and_can_end(ways: dict[str, list[str]]) -> None:
    is_sound = reachable(ways, "$START") >= set(ROLES) and all(
        "$END" in reachable(ways, role) for role in ROLES
    )
    try:
        read(workflow(ways))
    except InvalidWorkflow:
        assert not is_sound
    else:
        assert is_sound


def test_the_types_are_those_of_flows() -> None:
    assert set(KEYS) == set(KINDS)
    assert {kind for kind in KEYS if "nodes" in KEYS[kind]} == HOLDING
    assert kinds_with("merge") == ["parallel", "map", "workflow"]


# Nodes that are appended to a flow; `commands/control/test_append.py` runs them.

TREE: Tree = {
    "type": "sequential",
    "id": "all",
    "nodes": [
        {"type": "loop", "name": "twice", "nodes": [AGENT]},
        {"type": "loop", "name": "twice", "nodes": [AGENT]},
        {"type": "map", "over": "x", "as": "file", "name": "files", "nodes": [AGENT]},
    ],
}
TARGET = Target("flow", {"a": "${state.file}.json"}, as_flow(TREE))


def read_appended(source: str, to: str | None = None) -> Any:
    return read_flow_addition(
        parse_yaml(source.encode()),
        to=find_target(TARGET, to),
        check_schema=lambda _schema: [],
        surroundings=Surroundings("flow"),
    )


def test_the_table_keeps_what_it_has() -> None:
    addition = read_appended(
        "[{type: agent, agentId: a}, {type: loop, nodes: [{type: agent, agentId: b}]}]"
    )

    old = [place for place in addition.flow.nodes if place.split("/")[0] == "0"]
    assert old == list(TARGET.flow.nodes)
    assert list(addition.flow.nodes)[len(old) :] == ["1", "2", "2/0"]
    assert (addition.added, list(addition.roles)) == (("a", "loop"), ["b"])


@pytest.mark.parametrize(("to", "place"), [("all", "0/3"), ("files", "0/2/1")])
def test_a_container_is_named_by_its_id_or_name(to: str, place: str) -> None:
    assert read_appended("[{type: agent, agentId: a}]", to).flow.nodes[place] == AGENT


@pytest.mark.parametrize(
    ("named", "told"), [("twice", "is the name of 2 containers"), ("a", "is no id or name")]
)
def test_what_is_no_one_container_is_told(named: str, told: str) -> None:
    with refuses("no-such-container", match=told) as caught:
        find_target(TARGET, named)
    assert caught.value.facts["containers"] == ["all", "twice", "twice", "files"]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            "[{type: parallel, nodes: [{type: agent, agentId: a}, {type: agent, agentId: a}]}]",
            "at once",
        ),
        ("{roles: {a: {outputFile: x}}, nodes: [{type: agent, agentId: b}]}", "each item"),
    ],
)
def test_branches_have_an_output_file_each(source: str, told: str) -> None:
    with pytest.raises(InvalidWorkflow, match=told):
        read_appended(source)
