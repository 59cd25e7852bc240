from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workflow_file import SOUND, read_flow_file, spoiled

from uwf_git.engine.rehearsal import MOST_TURNS, Rehearsal, check_flow_text, find_least, rehearse
from uwf_git.model.definition.definition import FlowText

WORKFLOWS = sorted((Path(__file__).parents[2] / "workflows").glob("*.yaml"))


def rehearsed(text: str) -> Rehearsal:
    return rehearse(read_flow_file(text), "Do it.")


def flow(nodes: str, roles: str = "") -> str:
    return f"name: x\n{roles}root:\n  type: sequential\n  nodes:\n{nodes}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_shipped_workflow_ends_when_all_say_the_least(path: Path) -> None:
    found = rehearsed(path.read_text())

    assert found.problem is None
    assert found.roles


def test_graph_that_goes_round_tells_its_round() -> None:
    found = rehearsed(SOUND.replace("properties: {ok", "required: [ok], properties: {ok"))

    assert len(found.roles) == MOST_TURNS
    assert found.problem == (
        f"no end after {MOST_TURNS} turns: it goes round, writer → checker → writer"
    )
    assert found.at == "writer"


def test_loop_without_an_agent_is_found() -> None:
    nodes = "    - {type: loop, maxIterations: 90000, nodes: [{type: conditional, "
    found = rehearsed(flow(nodes + 'condition: "false", nodes: [{type: agent, agentId: a}]}]}\n'))

    assert found.problem is not None
    assert "the flow reached no agent after 10,000 nodes" in found.problem


def test_template_of_what_nobody_says_is_found() -> None:
    found = rehearsed(flow('    - {type: agent, agentId: a, input: "See ${state.plan}."}\n'))

    assert found == Rehearsal((), found.problem, "0/0")
    assert found.problem is not None
    assert "state.plan" in found.problem


def test_list_that_is_none_is_found() -> None:
    nodes = "    - {type: map, over: state.parts, nodes: [{type: agent, agentId: a}]}\n"

    found = rehearsed(flow(nodes))

    assert found.problem is not None
    assert "over of map (0/0) is null, and no list" in found.problem


def test_schema_that_nothing_fits_is_found() -> None:
    found = rehearsed(
        flow("    - {type: agent, agentId: a}\n", "roles: {a: {outputSchema: false}}\n")
    )

    assert found.problem == "no answer was found that fits the schema of a; make it simpler"


def test_branches_that_disagree_are_found() -> None:
    says = "{outputSchema: {required: [x], properties: {x: {const: %d}}}}"
    roles = f"roles: {{a: {says % 1}, b: {says % 2}}}\n"
    nodes = (
        "    - {type: parallel, nodes: [{type: agent, agentId: a}, {type: agent, agentId: b}]}\n"
    )

    assert rehearsed(flow(nodes, roles)) == Rehearsal(
        ("a", "b"), "its branches disagree about x; say with `merge` which one counts", "0/0"
    )


def test_an_answer_that_was_there_is_of_the_result() -> None:
    roles = "roles: {b: {outputSchema: {required: [x], properties: {x: {const: 1}}}}}\n"
    nodes = (
        "    - {type: map, over: state.xs, output: r, nodes: [{type: parallel, nodes: "
        "[{type: agent, agentId: b}]}]}\n    - {type: agent, agentId: a, input: "
        '"${state.r[0].x}"}\n'
    )
    found = rehearsed(flow(nodes, f"initialState: {{x: 1, xs: [0]}}\n{roles}"))
    assert found == Rehearsal(("b", "a"), None)


def test_graph_without_a_way_is_found() -> None:
    text = spoiled("        - to: $END\n", '        - {to: $END, condition: meta.ok = "never"}\n')

    assert rehearsed(text).problem == "after checker: no transition from checker holds"


TEXT = {"type": "string"}
ITEM = {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (True, {}),
        ({}, {}),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {}),
        ({"required": ["a"], "properties": {"a": {"type": "string"}}}, {"a": ""}),
        ({"type": "string", "minLength": 3}, "aaa"),
        ({"type": "boolean"}, False),
        ({"const": True}, True),
        ({"enum": ["b", "a"]}, "b"),
        ({"type": ["null", "string"]}, ""),
        ({"type": "null"}, None),
        ({"type": "integer", "minimum": 3}, 3),
        ({"type": "integer", "exclusiveMinimum": 3}, 4),
        ({"type": "integer", "exclusiveMinimum": 0}, 1),
        ({"type": "integer", "minimum": 3, "multipleOf": 5}, 5),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "number", "exclusiveMaximum": 0}, -1),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"type": "array"}, []),
        ({"type": "array", "minItems": 2, "items": ITEM}, [{"title": ""}] * 2),
        ({"minItems": 2, "uniqueItems": True, "items": {"enum": [1, 2, 3]}}, [1, 2]),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, ""),
        ({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": {}, "b": {}}),
        (
            {"$defs": {"a/b": ITEM}, "items": {"$ref": "#/$defs/a~1b"}, "minItems": 1},
            [{"title": ""}],
        ),
        ({"type": "string", "pattern": "^[0-9]{3}-.*[.]md$"}, "000-a.md"),
        ({"type": "string", "pattern": "^[a-z]+/[a-z]+$"}, "a/b"),
        ({"type": "object", "minProperties": 1, "properties": {"a": {"const": 1}}}, {"a": 1}),
        ({"type": "array", "minItems": 2, "uniqueItems": True, "items": TEXT}, ["", "a"]),
        (
            {
                "$defs": {"hash": {"type": "string", "pattern": "^#"}},
                "type": "array",
                "minItems": 1,
                "items": {"$ref": "#/$defs/hash"},
            },
            ["#1"],
        ),
    ],
    ids=str,
)  # fmt: skip
def test_least_value_fits(schema: Any, value: Any) -> None:
    inside = {"type": "object", "required": ["in"], "properties": {"in": schema}}

    assert find_least(schema) == value
    assert type(find_least(schema)) is type(value)
    if "$defs" not in str(schema):
        assert find_least(inside) == {"in": value}


def numbers(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    bounds = st.integers(-9, 9)
    least = st.fixed_dictionaries({"type": st.just(kind)}, optional={"minimum": bounds})
    return least | st.fixed_dictionaries({"type": st.just(kind), "exclusiveMinimum": bounds})


LEAVES = st.one_of(
    st.sampled_from([True, {}, {"type": "null"}, {"type": "boolean"}, {"enum": ["x", 1]}]),
    st.fixed_dictionaries({"type": st.just("string")}, optional={"minLength": st.integers(0, 5)}),
    numbers("integer"),
    numbers("number"),
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def of_fields(fields: dict[str, Any]) -> st.SearchStrategy[Any]:
        required = st.lists(st.sampled_from(sorted(fields)), unique=True) if fields else st.just([])
        return st.builds(
            lambda names: {"type": "object", "properties": fields, "required": names}, required
        )

    listed = {"type": st.just("array"), "items": inner, "minItems": st.integers(0, 3)}
    return (
        st.dictionaries(st.sampled_from("abc"), inner).flatmap(of_fields)
        | st.fixed_dictionaries(listed)
        | st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts})
    )


@given(st.recursive(LEAVES, containers, max_leaves=8))
def test_first_value_fits_whatever_the_schema_is_made_of(schema: Any) -> None:
    find_least(schema)


Kind = Literal["expression", "template"]


@pytest.mark.parametrize(
    ("language", "kind", "text"),
    [
        ("jsonata", "expression", "state.a = 1"),
        ("jsonata", "template", "a ${state.a & '}'} b"),
        ("javascript", "expression", "state.a === 1 && iteration < 5"),
        ("javascript", "expression", "item.name !== prompt"),
        ("javascript", "template", "a ${state.a || '}'} b"),
        ("javascript", "template", "no expression"),
    ],
)
def test_what_is_right(language: str, kind: Kind, text: str) -> None:
    assert check_flow_text(FlowText(kind, text, language, ("item",))) is None


@pytest.mark.parametrize(
    ("language", "kind", "text", "problem"),
    [
        ("jsonata", "expression", "state.a === 1", "compares with ="),
        ("jsonata", "template", "${state.a === 1}", "compares with ="),
        ("javascript", "expression", "state.a = 1", "===, and an expression cannot assign"),
        ("javascript", "expression", "other.name", "(at character 1)"),
        ("javascript", "template", "a ${state.}", "(at character 11)"),
        ("javascript", "template", "a ${state", "(at character"),
        ("javascript", "expression", "item", "(at character 1)"),
    ],
)
def test_what_is_wrong(language: str, kind: Kind, text: str, problem: str) -> None:
    found = check_flow_text(FlowText(kind, text, language))
    assert found is not None
    assert problem in found
