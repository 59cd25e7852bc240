import json

import pytest
from workflow_file import SOUND, problems_of, read, spoiled

from uwf_git.model.definition.definition import InvalidWorkflow


def test_sound_file_is_read_whole() -> None:
    definition = read(SOUND + "description: Writes.\ninitialState: {round: 1}\n")
    assert (definition.name, definition.description) == ("demo", "Writes.")
    assert list(definition.roles) == ["writer", "checker"]
    assert list(definition.graph) == ["$START", "writer", "checker"]
    assert definition.initial_state == {"round": 1}


def test_what_the_file_does_not_say_has_a_default() -> None:
    definition = read(SOUND + "description:\ninitialState: ~\n")
    assert (definition.description, definition.initial_state) == ("", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "- a\n- b",
            "a workflow is a YAML mapping with a name, and a root or a moderator, not a list",
        ),
        (
            "just words",
            "a workflow is a YAML mapping with a name, and a root or a moderator, not text",
        ),
        ("null", "a workflow is a YAML mapping with a name, and a root or a moderator, not empty"),
    ],
)
def test_file_that_is_no_mapping_is_reported_alone(text: str, message: str) -> None:
    assert problems_of(text) == [(1, "", message)]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("name: demo", "nam: demo", (1, "nam", "unknown key 'nam'; did you mean 'name'?")),
        ("name: demo", "name: 12", (1, "name", "must be text, not a number; write it in quotes")),
        (
            "name: demo",
            "name: 8fwkr3tn5v1qa",
            (
                1,
                "name",
                (
                    "'8fwkr3tn5v1qa' cannot be a workflow's name: it could be a node hash; "
                    "use a dash or another length"
                ),
            ),
        ),
        (
            "name: demo",
            "name: demo\ndescription: [a]",
            (2, "description", "must be text, not a list"),
        ),
        (
            "name: demo",
            "name: demo\ninitialState: [1]",
            (2, "initialState", "must be a mapping, not a list"),
        ),
        (
            "name: demo",
            "name: demo\nconfig: {maxExecutionTime: 10m}",
            (
                2,
                "config.maxExecutionTime",
                "must be a whole number of milliseconds, 1 or more, at most a year",
            ),
        ),
        (
            "name: demo",
            "name: demo\nversion: '1.1'",
            (2, "version", "must be '1.0', not '1.1'"),
        ),
    ],
)
def test_wrong_top_of_the_file_is_reported(
    old: str, new: str, problem: tuple[int, str, str]
) -> None:
    assert problem in problems_of(spoiled(old, new))


@pytest.mark.parametrize("name", ["", "name:\n"])
def test_missing_name_is_reported(name: str) -> None:
    assert problems_of(spoiled("name: demo\n", name)) == [(1, "", "'name' is missing")]


@pytest.mark.parametrize("version", ["'1.0'", "1.0"])
def test_container_workflow_needs_no_moderator_and_no_roles(version: str) -> None:
    definition = read(f"version: {version}\nname: x\nroot: {{type: agent, agentId: a}}\n")
    assert definition.flow is not None
    assert definition.graph == {}
    assert list(definition.roles) == ["a"]


@pytest.mark.parametrize("version", ["1", "'1'", "'2.0'", "[1]"])
def test_another_version_is_refused(version: str) -> None:
    text = f"version: {version}\nname: x\nroot: {{type: agent, agentId: a}}\n"
    ((line, path, message),) = problems_of(text)
    assert (line, path) == (1, "version")
    assert message.startswith("must be '1.0', not ")


def test_a_workflow_is_a_graph_or_a_flow() -> None:
    problem = (
        1,
        "moderator",
        "a workflow has a root (containers) or a moderator (a graph)",
    )
    text = "moderator: []\nname: x\nroot: {type: agent, agentId: a}\n"
    assert problems_of(text) == [problem]


def test_language_belongs_to_containers() -> None:
    ((_line, path, message),) = problems_of(SOUND + "language: jsonata\n")
    assert (path, message[:22]) == ("language", "unknown key 'language'")


def test_all_problems_are_reported_at_once_in_the_order_of_lines() -> None:
    text = """\
name: two words
roles:
  planner:
    systemprompt: Plan.
    outputSchema: {properties: {a: {type: objekt}}}
  __END__: {}
  lonely: {}
moderator:
  graph:
    - from: __start__
      transitions:
        - to: planer
          condition: true
    - from: planner
      transitions:
        - to: $END
        - to: planner
          when: "meta.("
defaultAgent: " foo"
agentOverrides: {plannr: {command: a, timeout: 0, env: {API_KEY: x}}}
config: [1]
"""
    assert [each[:2] for each in problems_of(text)] == [
        (1, "name"),
        (4, "roles.planner.systemprompt"),
        (5, "roles.planner.outputSchema.properties.a.type"),
        (6, "roles.__END__"),
        (6, "roles.__END__"),
        (7, "roles.lonely"),
        (12, "moderator.graph[0].transitions[0].to"),
        (13, "moderator.graph[0].transitions[0].condition"),
        (17, "moderator.graph[1].transitions[1]"),
        (18, "moderator.graph[1].transitions[1].when"),
        (19, "defaultAgent"),
        (20, "agentOverrides.plannr"),
        (20, "agentOverrides.plannr.timeout"),
        (20, "agentOverrides.plannr.env.API_KEY"),
        (21, "config"),
    ]


def test_error_counts_the_problems_and_names_the_first() -> None:
    with pytest.raises(InvalidWorkflow) as caught:
        read(spoiled("name: demo", "nam: demo"))
    error = caught.value
    assert error.message == (
        "the workflow has 2 problems, the first on line 1 (nam): "
        "unknown key 'nam'; did you mean 'name'?"
    )
    assert (error.code, error.exit_status) == ("invalid-workflow", 1)


def test_error_with_one_problem_speaks_of_one() -> None:
    with pytest.raises(InvalidWorkflow, match=r"^the workflow has 1 problem on line 1 \(name\): "):
        read(spoiled("name: demo", "name: 1"))


def test_error_carries_every_problem_as_json() -> None:
    with pytest.raises(InvalidWorkflow) as caught:
        read("[]")
    assert json.loads(json.dumps(caught.value.facts)) == {
        "problems": [
            {
                "path": "",
                "message": (
                    "a workflow is a YAML mapping with a name, and a root or a moderator, "
                    "not a list"
                ),
                "line": 1,
            }
        ]
    }
