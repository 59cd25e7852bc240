"""Branches as processes: few of them here, many in test_branch_races.py."""

import random

from commands.branch_storm import run_storm
from commands.world import World


def test_branches_lose_nothing_if_one_agent_may_run_at_a_time(world: World) -> None:
    run_storm(world, (3, 2), random.Random(7), kills=1, is_alone=True)
