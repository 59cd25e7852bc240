from workflow_file import read_flow_file

from uwf_git.model.builtin import FLOW, WORKFLOW, reference
from uwf_git.model.definition.definition import Surroundings, UsedWorkflow
from uwf_git.model.flow import MAX_NESTING
from uwf_git.model.node import Node, build_node
from uwf_git.model.workflow import build_workflow

GRAPH = """\
name: graph
roles: {a: {}}
moderator: [{from: $START, to: a}, {from: a, to: $END}]
"""


def use(text: str, *known: UsedWorkflow) -> UsedWorkflow:
    by_name = {each.list_names()[0]: each for each in known}
    node, closure = build_workflow(
        read_flow_file(text, Surroundings(find_used=by_name.__getitem__)), timestamp=0
    )
    nodes: list[Node] = [node, *closure]
    return UsedWorkflow(node.hash, nodes)


def test_nesting_counts_the_threads_that_lie_in_one_another() -> None:
    graph = use(GRAPH)
    one = use("name: one\nroot: {type: workflow, use: graph}\n", graph)
    two = use(
        "name: two\nroot: {type: parallel, nodes: [{type: agent, agentId: a},"
        " {type: loop, nodes: [{type: workflow, use: one}]}]}\n",
        one,
    )
    assert [each.nesting() for each in (graph, one, two)] == [0, 1, 3]
    assert two.list_names() == ["two", "one", "graph"]


def test_without_surroundings_nothing_is_checked_and_nothing_found() -> None:
    outside = Surroundings()
    assert outside.name is None
    assert outside.find_used("a") == "no other workflow is known here"


def test_a_chain_of_any_length_is_too_deep_and_no_crash() -> None:
    known = use(GRAPH)
    nodes = list(known.nodes)
    for number in range(2_000):
        place = {"type": "workflow", "use": "w", "workflow": reference(nodes[0].hash)}
        flow = build_node(FLOW, {"nodes": {"0": place}}, timestamp=0)
        payload = {
            "name": f"w{number}",
            "description": "",
            "roles": {},
            "flow": reference(flow.hash),
        }
        nodes[:0] = [build_node(WORKFLOW, payload, timestamp=0), flow]
    assert UsedWorkflow(nodes[0].hash, nodes).nesting() > MAX_NESTING
