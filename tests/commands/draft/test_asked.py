import pytest
from workflow_file import read_flow_file

from uwf_git.commands.draft import find_problems, find_unset
from uwf_git.model.yaml.reader import parse_yaml

FILE = """\
name: x
roles:
  a: {{outputSchema: {schema}}}
initialState: {{begun: 1}}
root:
  type: sequential
  nodes:
    - {{type: agent, agentId: a, output: said}}
    - type: map
      over: state.list
      as: each
      output: results
      nodes: [{{type: agent, agentId: a, input: {{deep: ["${{{asked}}}"]}}}}]
"""
CLOSED = "{type: object, properties: {list: {type: array}}, allOf: [{properties: {more: true}}]}"


def found(asked: str, schema: str = CLOSED) -> list[tuple[str, str]]:
    text = FILE.format(asked=asked, schema=schema)
    definition = read_flow_file(text)
    problems = find_problems(
        parse_yaml(text), lambda findings, _: find_unset(findings, definition, root=("root",))
    )
    return [(each.path, each.message) for each in problems]


def test_what_something_sets_may_be_read() -> None:
    for key in [
        *("list", "more", "begun", "said", "results", "each", "eachIndex", "aOutput"),
        *("error", "errors", "outputs", "iteration", "parallel_0"),
    ]:
        assert found(f"state.{key}") == []


def test_what_nothing_sets_is_told_with_its_place() -> None:
    assert found("state.lists.length") == [
        ("root.nodes[1].nodes[0].input.deep[0]", "nothing sets state.lists; did you mean 'list'?")
    ]
    assert [path for path, _ in found("[1].map(x => state['lost'])")] == [
        "root.nodes[1].nodes[0].input.deep[0]"
    ]


@pytest.mark.parametrize("schema", ["{type: object}", "{$ref: '#/$defs/x', $defs: {x: true}}"])
def test_role_that_may_say_anything_may_set_anything(schema: str) -> None:
    assert found("state.lost", schema) == []


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
    definition = read_flow_file(text)

    problems = find_problems(
        parse_yaml(text), lambda findings, _: find_unset(findings, definition, root=())
    )

    assert [(each.path, each.line) for each in problems] == [("roles.a", 3)]
    assert "a condition after b reads meta.okay of a" in problems[0].message
