import pytest

from uwf_git.engine.flow_text import check_flow_text
from uwf_git.model.definition.surroundings import FlowText


@pytest.mark.parametrize(("text", "is_right"), [("state.a = 1", True), ("state.a === 1", False)])
def test_jsonata_is_checked_as_in_graphs(text: str, *, is_right: bool) -> None:
    assert (check_flow_text(FlowText("expression", text, "jsonata")) is None) is is_right
