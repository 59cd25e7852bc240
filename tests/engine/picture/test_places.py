"""No text, box or line lies where it must not: by guessed widths, without a browser."""

import random
from collections.abc import Sequence

import pytest
from engine.picture.geometry import find_faults
from engine.picture.subjects import HOSTILE, draw_flow, draw_graph, known_subjects

from uwf_git.engine.picture.draw import lay_out, make_plan
from uwf_git.engine.picture.labels import BADGE, LABEL, NAME, Box, Drawing, Line, Text
from uwf_git.engine.picture.plan import Subject
from uwf_git.model.flow import Flow, FlowNode
from uwf_git.model.workflow import END, START, Transition


def drawing_of(
    boxes: Sequence[Box] = (),
    lines: Sequence[Line] = (),
    texts: Sequence[Text] = (),
    badges: Sequence[Box] = (),
) -> Drawing:
    """Return a drawing of 100 by 100."""
    marks = tuple((box, Text(box.x + 2, box.y + 20, "a", BADGE, box.key)) for box in badges)
    return Drawing("", "", 100, 100, tuple(boxes), tuple(lines), tuple(texts), marks)


BOX = Box(10, 10, 50, 30, "role", "a")
FAULTS = {
    "outside the picture": Drawing("", "", 100, 100, (), (), (Text(95, 20, "abc", NAME, "a"),), ()),
    "texts over one another": drawing_of(
        texts=[Text(10, 20, "abc", NAME, "a"), Text(20, 24, "def", LABEL, "b")]
    ),
    "beyond its box": drawing_of(boxes=[BOX], texts=[Text(40, 30, "abc", NAME, "a")]),
    "on a foreign box": drawing_of(boxes=[BOX], texts=[Text(12, 30, "a", NAME, "b")]),
    "below a badge": drawing_of(texts=[Text(12, 30, "a", NAME, "b")], badges=[BOX]),
    "boxes over one another": drawing_of(boxes=[BOX, BOX._replace(x=30, key="b")]),
    "beyond the container": drawing_of(boxes=[BOX, BOX._replace(x=30, key="a/0")]),
    "on one line": drawing_of(
        lines=[Line((((10, 10), (10, 50)),), "way"), Line((((11, 40), (11, 60)),), "way")]
    ),
    "through a text": drawing_of(
        lines=[Line((((10, 15), (90, 15)),), "way")], texts=[Text(20, 20, "abc", NAME, "a")]
    ),
    "through a box": drawing_of(lines=[Line((((0, 20), (90, 20)),), "way")], boxes=[BOX]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found(fault: str) -> None:
    assert [found for found in find_faults(FAULTS[fault]) if found.startswith(fault)] != []


@pytest.mark.parametrize("subject", known_subjects(), ids=lambda each: f"{each.name}")
def test_nothing_is_in_the_way_in_a_known_picture(subject: Subject) -> None:
    assert find_faults(lay_out(make_plan(subject))) == []


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_kept_in_their_place(text: str) -> None:
    ways = (Transition(text, text), Transition(END, text), Transition("b", text))
    subject = Subject(text, text, {text: text, "b": text}, {START: ways, text: ways, "b": ways})
    assert find_faults(lay_out(make_plan(subject))) == []
    nodes = {
        "0": FlowNode("0", "loop", {"name": text, "condition": text, "maxIterations": text}),
        "0/0": FlowNode("0/0", "agent", {"agentId": text, "output": text}),
        "0/1": FlowNode("0/1", "workflow", {"use": text, "id": text}),
    }
    assert find_faults(lay_out(make_plan(Subject(text, text, {}, Flow(nodes))))) == []


@pytest.mark.parametrize("seed", range(30))
def test_nothing_is_in_the_way_in_a_picture_by_chance(seed: int) -> None:
    chance = random.Random(seed)
    for subject in (draw_graph(chance), draw_flow(chance)):
        assert find_faults(lay_out(make_plan(subject))) == []
