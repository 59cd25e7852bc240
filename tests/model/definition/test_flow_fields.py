import pytest
from workflow_file import read_flow_file

from uwf_git.model.definition.flow_fields import KEYS, kinds_with
from uwf_git.model.flow import HOLDING, KINDS


def test_the_types_are_those_of_flows() -> None:
    assert set(KEYS) == set(KINDS)
    assert {kind for kind in KEYS if "nodes" in KEYS[kind]} == HOLDING
    assert kinds_with("merge") == ["parallel", "map", "workflow"]


def test_a_name_has_up_to_200_characters() -> None:
    root = f"{{type: agent, agentId: a, name: {'é' * 200}}}"
    assert read_flow_file(f"name: x\nroot: {root}\n").flow is not None


@pytest.mark.parametrize("bound", ["3", "'${state.max}'", "' ${state.max} '"])
def test_a_bound_is_a_number_or_a_template(bound: str) -> None:
    root = f"{{type: loop, maxIterations: {bound}, nodes: [{{type: agent, agentId: a}}]}}"
    assert read_flow_file(f"name: x\nroot: {root}\n").flow is not None
