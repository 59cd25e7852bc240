import pytest
from workflow_file import SOUND, problems_of, read, spoiled

from uwf_git.model.builtin import MODERATOR
from uwf_git.model.names import NodeHash
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import END, START, Transition, build_workflow, parse_graph
from uwf_git.model.workflow_name import check_name


def test_the_two_ends_are_spelled_as_every_store_has_them() -> None:
    """They stand in moderator nodes, so another spelling would be another node."""
    assert (START, END) == ("$START", "$END")


@pytest.mark.parametrize("end", [START, END])
def test_no_role_can_have_the_name_of_an_end(end: str) -> None:
    assert check_name(end) is not None
    messages = [
        message for _line, _path, message in problems_of(spoiled("  checker:", f"  {end}:"))
    ]
    assert f"{end} is an end of the graph and cannot be a role" in messages


def test_a_thread_stands_at_the_start_before_its_first_step() -> None:
    present = ThreadState(NodeHash("8FWKR3TN5V1QA"), {}, 0)
    assert present.role == START


def test_a_transition_says_whether_it_has_a_condition() -> None:
    """Left out it would hold always, and a forgotten condition would go unnoticed."""
    with pytest.raises(TypeError, match="condition"):
        Transition("writer")  # type: ignore[call-arg]  # the missing one is the point
    assert Transition("writer", None) != Transition("writer", "true")


def test_a_table_keeps_its_ways_in_the_order_in_which_they_are_asked() -> None:
    ways = {
        START: (Transition("writer", None),),
        "writer": (Transition("checker", None),),
        "checker": (Transition("writer", "meta.ok = false"), Transition(END, None)),
    }
    assert read(SOUND).graph == ways
    _workflow, closure = build_workflow(read(SOUND), timestamp=0)
    stored = next(node for node in closure if node.type == MODERATOR)
    assert parse_graph(stored) == ways
    assert list(parse_graph(stored)) == list(ways)
