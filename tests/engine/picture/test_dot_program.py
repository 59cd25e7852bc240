"""What Graphviz says to the pictures in DOT."""

import random
import shutil
import subprocess
from xml.etree import ElementTree as ET

import pytest
from engine.picture.subjects import draw_flow, draw_graph, known_subjects

from uwf_git.engine.picture.draw import draw
from uwf_git.engine.picture.plan import Subject
from uwf_git.model.transition import START, Transition

DOT = shutil.which("dot")
pytestmark = pytest.mark.skipif(DOT is None, reason="no dot; tests/browser/install.sh gets it")


def canonical(source: str) -> str:
    """Return *source* as Graphviz reads it."""
    ran = subprocess.run(
        [str(DOT), "-Tcanon"], input=source.encode(), capture_output=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, b""), ran.stderr
    return ran.stdout.decode()


def test_graphviz_takes_every_picture() -> None:
    chance = random.Random(0)
    drawn = [draw_subject(chance) for _ in range(5) for draw_subject in (draw_graph, draw_flow)]
    for subject in [*known_subjects(), *drawn]:
        assert "digraph" in canonical(draw(subject, "dot"))


@pytest.mark.parametrize("text", ['"]; n0 -> n9; x [label="', "\\N\\G\\l\\", "<b>x</b>", "&lt;"])
def test_hostile_names_stay_names(text: str) -> None:
    drawn = subprocess.run(
        [str(DOT), "-Tsvg"],
        input=draw(Subject(text, "", {}, {START: (Transition(text, None),)}), "dot").encode(),
        capture_output=True,
        check=True,
    )
    texts = [
        each.text for each in ET.fromstring(drawn.stdout).iter("{http://www.w3.org/2000/svg}text")
    ]
    assert texts == ["start", text, "end"]
