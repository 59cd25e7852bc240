"""Branches as processes: few of them here, many in test_branch_races.py."""

import os

from commands.branch_storm import run_storm
from commands.world import World

from uwf_git.store.git.config import set_config


def test_branches_lose_nothing_if_one_agent_may_run_at_a_time(world: World) -> None:
    set_config(os.path.join(world.store.path, "config"), "uwf.maxRunning", "1")

    run_storm(world, width=3, passes=2, kills=1)
