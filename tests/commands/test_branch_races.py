"""Branches under drives, steps, patches and kill -9 of other processes."""

from commands.branch_storm import run_storm
from commands.world import World


def test_eight_branches_of_five_steps_lose_and_double_nothing(world: World) -> None:
    run_storm(world, width=8, passes=5, kills=3)
