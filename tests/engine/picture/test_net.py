import random

from engine.picture.subjects import draw_flow, draw_graph, every_kind, known_subjects

from uwf_git.engine.picture.draw import (
    Net,
    make_net,
    make_plan,
    render_mermaid,
    walk_groups,
    walk_nodes,
)
from uwf_git.engine.picture.labels import make_label


def reached(net: Net) -> set[str]:
    """Return the nodes that the first one reaches."""
    found = {next(walk_nodes(net.members)).name}
    left = list(found)
    while left:
        name = left.pop()
        for edge in net.edges:
            if edge.source == name and edge.target not in found:
                found.add(edge.target)
                left.append(edge.target)
    return found


def test_each_node_has_a_name_of_its_own_and_edges_lead_to_nodes() -> None:
    chance = random.Random(0)
    drawn = [draw(chance) for _ in range(20) for draw in (draw_graph, draw_flow)]
    for subject in [*known_subjects(), *drawn]:
        net = make_net(make_plan(subject))
        names = [node.name for node in walk_nodes(net.members)]
        names += [group.name for group in walk_groups(net.members)]
        assert len(set(names)) == len(names)
        assert {name for edge in net.edges for name in (edge.source, edge.target)} <= set(names)


def test_all_of_a_flow_is_reached_from_its_start() -> None:
    for seed in range(20):
        net = make_net(make_plan(draw_flow(random.Random(seed))))
        assert reached(net) == {node.name for node in walk_nodes(net.members)}


def test_a_loop_leads_back_and_a_choice_past_what_it_may_run() -> None:
    net = make_net(make_plan(every_kind()))
    nodes = {node.name: node for node in walk_nodes(net.members)}
    told = {
        (nodes[edge.source].lines, nodes[edge.target].lines, edge.lines, edge.is_back)
        for edge in net.edges
    }
    assert (("two",), ("two",), (), True) in told
    assert (("state.late",), ("发布",), ("then",), False) in told
    assert (("state.late",), ("",), ("else",), False) in told


def test_quotes_end_no_text() -> None:
    plan = make_plan(every_kind())
    assert '{"state.risk === #39;high#39;"}' in render_mermaid(plan)


def test_a_label_has_three_lines_of_44_columns() -> None:
    label = make_label([f"{number}. {'word ' * 40}" for number in (1, 2)])
    assert len(label.lines) == 6
    assert [line.indent > 0 for line in label.lines] == [False, True, True] * 2
    assert all(len(line.text) <= 45 for line in label.lines)
    assert label.lines[2].text.endswith("…")
