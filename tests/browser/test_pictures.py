"""Pictures in Chromium: where its own fonts put the texts, light and dark, and without styles."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from engine.picture.geometry import Rect, find_faults
from engine.picture.subjects import HOSTILE, draw_flow, draw_graph, known_subjects

from uwf_git.engine.picture.draw import STYLE_SHEET, draw, lay_out, make_plan, render_svg
from uwf_git.engine.picture.labels import Drawing
from uwf_git.engine.picture.plan import GraphPlan, Subject
from uwf_git.model.workflow import END, START, Transition

_PICTURES = 90
_AT_ONCE = 30

_MEASURE = """() => [...document.querySelectorAll('svg')].map(svg =>
    [...svg.querySelectorAll('text')].map(text => {
        const box = text.getBBox();
        return [box.x, box.y, box.x + box.width, box.y + box.height];
    }))"""
_POLICY = "default-src 'none'; style-src 'none'; script-src 'none'; img-src 'none'"


def measured_faults(page: Any, drawings: Sequence[Drawing]) -> list[str]:
    """Return what is wrong with *drawings* as the browser shows them."""
    page.set_content("".join(map(render_svg, drawings)))
    faults = []
    for drawing, rects in zip(drawings, page.evaluate(_MEASURE), strict=True):
        texts = [*drawing.texts, *(text for _, text in drawing.badges)]
        found = {
            text: Rect(left, top + 1, right, bottom - 1)
            for text, (left, top, right, bottom) in zip(texts, rects, strict=True)
        }
        faults += find_faults(drawing, found.__getitem__)
    return faults


def test_nothing_is_in_the_way_in_a_known_picture(page: Any) -> None:
    drawings = [lay_out(make_plan(subject)) for subject in known_subjects()]
    assert measured_faults(page, drawings) == []


def test_hostile_names_are_kept_in_their_place(page: Any) -> None:
    drawings = []
    for text in HOSTILE:
        ways = (Transition(text, text), Transition(END, text))
        subject = Subject(text, text, {text: text}, {START: ways, text: ways})
        drawings.append(lay_out(make_plan(subject)))
    assert measured_faults(page, drawings) == []


@pytest.mark.parametrize("first", range(0, _PICTURES, _AT_ONCE))
def test_nothing_is_in_the_way_in_a_picture_by_chance(page: Any, first: int) -> None:
    for draw_subject in (draw_graph, draw_flow):
        subjects = [draw_subject(random.Random(first + n)) for n in range(_AT_ONCE)]
        assert measured_faults(page, [lay_out(make_plan(each)) for each in subjects]) == []


def test_a_file_follows_the_readers_light_and_dark(page: Any) -> None:
    page.set_content(draw(known_subjects()[0], "svg"))
    grounds = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        grounds.append(page.evaluate("getComputedStyle(document.querySelector('.ground')).fill"))
    assert grounds == ["rgb(255, 255, 255)", "rgb(13, 17, 23)"]


def test_a_page_with_a_strict_policy_finds_nothing_to_refuse(page: Any) -> None:
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    drawings = [lay_out(make_plan(subject)) for subject in known_subjects()]
    page.set_content(policy + "".join(render_svg(each, stands_alone=False) for each in drawings))
    assert page.evaluate("document.querySelectorAll('svg').length") == len(drawings)
    assert (
        page.evaluate("document.querySelectorAll('svg script, svg [style], svg style').length") == 0
    )
    assert said == []
    assert "@media (prefers-color-scheme: dark)" in STYLE_SHEET


def test_mermaid_takes_every_picture(page: Any, mermaid: str) -> None:
    page.set_content("<body></body>")
    page.add_script_tag(content=mermaid)
    page.evaluate(
        "mermaid.initialize({startOnLoad: false, securityLevel: 'strict', maxEdges: 5000})"
    )
    chance = random.Random(0)
    graphs = [draw_graph(chance) for _ in range(10)]
    for subject in [*known_subjects(), *graphs, *(draw_flow(chance) for _ in range(10))]:
        source = draw(subject, "mermaid")
        found = page.evaluate("source => mermaid.parse(source)", source)
        assert found["diagramType"].startswith("flowchart"), source


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_mermaid_shows_hostile_names_as_they_are(page: Any, mermaid: str, text: str) -> None:
    page.set_content("<body></body>")
    page.add_script_tag(content=mermaid)
    page.evaluate("mermaid.initialize({startOnLoad: false, securityLevel: 'strict'})")
    subject = Subject("x", "", {"r": text}, {START: (Transition(text, None),), text: ()})
    plan = make_plan(subject)
    assert isinstance(plan, GraphPlan)
    svg = page.evaluate(
        "async source => (await mermaid.render('drawn', source)).svg", draw(subject, "mermaid")
    )
    page.set_content(svg)
    shown = page.evaluate("document.body.textContent")
    assert "".join(plan.stations[1].name.split()) in "".join(shown.split())
