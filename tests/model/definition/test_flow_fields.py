from uwf_git.model.definition.flow_fields import KEYS, kinds_with
from uwf_git.model.flow import HOLDING, KINDS


def test_the_types_are_those_of_flows() -> None:
    assert set(KEYS) == set(KINDS)
    assert {kind for kind in KEYS if "nodes" in KEYS[kind]} == HOLDING
    assert kinds_with("merge") == ["parallel", "map", "workflow"]
