"""The bytes of pictures, and that foreign text has no power in any form."""

import random
import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest
from engine.picture.subjects import HOSTILE, draw_flow, draw_graph, known_subjects
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.picture.draw import FORMS, draw, lay_out, make_plan, render_svg
from uwf_git.engine.picture.labels import ELLIPSIS, columns, cut, tell_flow, tell_graph, wrap
from uwf_git.engine.picture.layout import lay_out_flow, lay_out_graph
from uwf_git.engine.picture.plan import FlowPlan, GraphPlan, Subject
from uwf_git.model.flow import Flow, FlowNode
from uwf_git.model.text import one_line
from uwf_git.model.workflow import END, START, Transition

KNOWN = known_subjects()
PLAIN = [subject for subject in KNOWN if subject.thread is None]
THREADS = [subject for subject in KNOWN if subject.thread is not None]
_SVG = "{http://www.w3.org/2000/svg}"
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe]")


@pytest.mark.parametrize("subject", PLAIN, ids=lambda each: each.name)
def test_workflows_are_drawn_byte_for_byte(
    subject: Subject, golden: Callable[[str, str | bytes], None]
) -> None:
    golden(f"pictures/{subject.name}.txt", draw(subject, "text"))
    golden(f"pictures/{subject.name}.svg", render_svg(lay_out(make_plan(subject))))
    golden(f"pictures/{subject.name}.mmd", draw(subject, "mermaid"))


def test_threads_are_drawn_byte_for_byte(golden: Callable[[str, str | bytes], None]) -> None:
    drawn = [
        *(draw(subject, "text") for subject in THREADS),
        *(render_svg(lay_out(make_plan(each)), stands_alone=False) for each in THREADS),
        *(draw(subject, "mermaid") for subject in THREADS[:4]),
    ]
    golden("pictures/threads", "\n".join(drawn))


@pytest.mark.parametrize("form", FORMS)
def test_the_same_gives_the_same(form: str) -> None:
    again = {subject.name: subject for subject in known_subjects() if subject.thread is None}
    for subject in PLAIN:
        assert draw(subject, form) == draw(again[subject.name], form)


def hostile(text: str) -> list[Subject]:
    """Return a graph and a flow that say *text* wherever they can."""
    ways = (Transition(text, text), Transition(END, text))
    nodes = {
        "0": FlowNode("0", "conditional", {"id": text, "condition": text}),
        "0/0": FlowNode("0/0", "agent", {"agentId": text, "output": text}),
    }
    return [
        Subject(text, text, {text: text}, {START: ways, text: ways}),
        Subject(text, text, {}, Flow(nodes)),
    ]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_an_svg_has_only_the_elements_of_a_picture(text: str) -> None:
    for subject in hostile(text):
        root = ET.fromstring(draw(subject, "svg"))
        names = {element.tag.removeprefix(_SVG) for element in root.iter()}
        assert names <= {"svg", "title", "desc", "style", "rect", "path", "text"}
        assert not any("style" in element.attrib for element in root.iter())
        first = [element.tag.removeprefix(_SVG) for element in root[:3]]
        assert first == ["title", "desc", "style"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_controls_are_spelled_out_and_keys_masked(form: str, text: str) -> None:
    for subject in hostile(text):
        drawn = draw(subject, form)
        assert _CONTROLS.search(drawn) is None
        assert "sk-ant-REDACTED" not in drawn
        drawn.encode()


def test_a_picture_says_all_of_it_in_words() -> None:
    for subject in KNOWN:
        plan = make_plan(subject)
        assert isinstance(plan, GraphPlan | FlowPlan)
        drawing = lay_out_graph(plan) if isinstance(plan, GraphPlan) else lay_out_flow(plan)
        words = tell_graph(plan) if isinstance(plan, GraphPlan) else tell_flow(plan)
        assert drawing.about == words


NODE = re.compile(r"(?:subgraph )?([gn][0-9]+)[\[({]")
EDGE = re.compile(r"([gn][0-9]+) -\.?-+>(?:\|.*\|)? ([gn][0-9]+)")


def read_mermaid(subject: Subject) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the names of nodes and frames, and the ends of edges."""
    lines = [line.strip() for line in draw(subject, "mermaid").splitlines()]
    names = [found[1] for line in lines if (found := NODE.match(line))]
    return names, [(found[1], found[2]) for line in lines if (found := EDGE.fullmatch(line))]


def test_each_node_has_a_name_of_its_own_and_edges_lead_to_nodes() -> None:
    chance = random.Random(0)
    drawn = [make(chance) for _ in range(20) for make in (draw_graph, draw_flow)]
    for subject in [*known_subjects(), *drawn]:
        names, edges = read_mermaid(subject)
        assert edges
        assert len(set(names)) == len(names)
        assert {name for edge in edges for name in edge} <= set(names)


def test_all_of_a_flow_is_reached_from_its_start() -> None:
    for seed in range(20):
        names, edges = read_mermaid(draw_flow(random.Random(seed)))
        found, left = {names[0]}, [names[0]]
        while left:
            source = left.pop()
            new = {end for start, end in edges if start == source} - found
            found |= new
            left += new
        assert found == {name for name in names if name.startswith("n")}


LINES = st.text(st.characters(), max_size=200).map(one_line)


def test_lines_break_between_words_and_are_indented() -> None:
    assert wrap("1. one two three", 9, "   ") == ["1. one", "   two", "   three"]
    assert wrap("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert wrap("登录功能", 4) == ["登录", "功能"]
    assert wrap("", 4) == [""]


@given(LINES, st.integers(6, 60))
def test_wrapping_keeps_all_words_within_the_width(text: str, room: int) -> None:
    lines = wrap(text, room, "   ")
    assert all(columns(line) <= room for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(LINES, st.integers(1, 60))
def test_cutting_keeps_the_beginning_within_the_width(text: str, room: int) -> None:
    shown = cut(text, room, columns)
    assert columns(shown) <= room
    assert shown == text or (shown.endswith(ELLIPSIS) and text.startswith(shown[:-1]))
