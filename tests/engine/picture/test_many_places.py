"""As test_places.py by chance, for many more pictures."""

from conftest import Draws
from engine.picture.geometry import find_faults
from engine.picture.subjects import draw_flow, draw_graph

from uwf_git.engine.picture.draw import lay_out, make_plan


def test_nothing_is_in_the_way_in_many_pictures_by_chance(draws: Draws) -> None:
    for _ in draws.rounds(100):
        for subject in (draw_graph(draws.chance), draw_flow(draws.chance)):
            assert find_faults(lay_out(make_plan(subject))) == []
