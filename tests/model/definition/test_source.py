import json

import pytest
from workflow_file import SOUND, read, spoiled

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


@pytest.mark.parametrize("version", ["'1.0'", "1.0"])
def test_container_workflow_needs_no_moderator_and_no_roles(version: str) -> None:
    definition = read(f"version: {version}\nname: x\nroot: {{type: agent, agentId: a}}\n")
    assert definition.flow is not None
    assert definition.graph == {}
    assert list(definition.roles) == ["a"]


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
