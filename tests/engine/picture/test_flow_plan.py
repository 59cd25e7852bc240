from engine.picture.subjects import SEED_FLOWS, every_kind, read_subject

from uwf_git.engine.picture.draw import make_plan
from uwf_git.engine.picture.plan import Block, FlowPlan, Subject, plan_flow
from uwf_git.model.builtin import reference
from uwf_git.model.flow import Flow, FlowNode
from uwf_git.model.names import NodeHash


def blocks_of(subject: Subject) -> dict[str, Block]:
    """Return all blocks by their places."""
    plan = make_plan(subject)
    assert isinstance(plan, FlowPlan)
    found: dict[str, Block] = {}
    left = list(plan.blocks)
    while left:
        block = left.pop()
        found[block.place] = block
        left += [inner for branch in block.branches for inner in branch.blocks]
    return found


def test_every_node_has_its_block() -> None:
    for subject in [every_kind(), *map(read_subject, SEED_FLOWS)]:
        assert isinstance(subject.moves, Flow)
        blocks = blocks_of(subject)
        assert {place: block.kind for place, block in blocks.items()} == {
            place: node.kind for place, node in subject.moves.nodes.items()
        }


def test_headings_say_what_a_container_does() -> None:
    blocks = blocks_of(every_kind())
    assert {place: (each.name, each.note) for place, each in blocks.items() if each.branches} == {
        "0": ("sequence", ""),
        "0/0": ("map “each feature” · the first wins", "for each feature of state.features"),
        "0/1": ("if", "state.risk === 'high'"),
        "0/2": ("if “maybe”", "state.late"),
        "0/3": ("parallel · 1 may fail · goes on after an error", ""),
        "0/3/1": ("loop · at most 3", ""),
    }


def test_agents_say_what_they_give() -> None:
    blocks = blocks_of(every_kind())
    assert (blocks["0/0/1"].name, blocks["0/0/1"].note) == ("checker", "→ done")
    assert (blocks["0/2/0"].name, blocks["0/2/0"].note) == ("发布", "publisher · 0.5 s")
    assert (blocks["0/3/2"].name, blocks["0/3/2"].note) == ("three", "retries 2")


def test_a_workflow_in_a_flow_is_named() -> None:
    used = {"use": "review", "id": "second look", "workflow": reference(NodeHash("0" * 13))}
    flow = Flow({"0": FlowNode("0", "workflow", used)})
    plan = plan_flow(Subject("x", "", {}, flow), flow)
    assert (plan.blocks[0].name, plan.blocks[0].note) == ("second look", "workflow review")


def test_branches_run_beside_each_other_or_one_of_them() -> None:
    blocks = blocks_of(every_kind())
    assert [len(branch.blocks) for branch in blocks["0/3"].branches] == [1, 1, 1]
    assert [(b.label, len(b.blocks)) for b in blocks["0/1"].branches] == [("then", 2), ("else", 1)]
    assert [(b.label, len(b.blocks)) for b in blocks["0/2"].branches] == [("then", 1), ("else", 0)]
