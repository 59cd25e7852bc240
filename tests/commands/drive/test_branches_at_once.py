"""Branches as processes: few of them here, many in test_branch_races.py."""

import random

from commands.branch_storm import run_storm
from commands.world import World


def test_three_branches_of_two_steps_lose_and_double_nothing(world: World) -> None:
    run_storm(world, (3, 2), random.Random(7), kills=1)
