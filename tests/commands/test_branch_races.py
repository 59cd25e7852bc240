"""Branches under drives, steps, patches and kill -9 of other processes."""

from commands.branch_storm import run_storm
from commands.world import World
from conftest import Draws


def test_eight_branches_of_five_steps_lose_and_double_nothing(world: World, draws: Draws) -> None:
    run_storm(world, (8, 5), draws.chance, kills=3)
