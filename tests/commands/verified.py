"""A flow whose plans are carried out and verified, and players of it."""

from typing import Any

from commands.world import World, replied

from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.model.names import ThreadId

PLANS = """\
name: plans
description: Carry out each plan, and have it verified.
initialState: {tries: 3, plans: [{file: 000.md}, {file: 001.md}]}
root:
  type: loop
  over: state.plans
  as: plan
  nodes:
    - type: agent
      agentId: executor
      input: "Carry out ${state.plan.file}."
      retries: ${state.tries - 1}
      verifiedBy: {agentId: verifier, when: meta.verified === true}
"""
GOOD = {"verified": True}
BAD = {"verified": False, "issues": ["no tests", "no words"], "suggestion": "write both"}


def in_order(*results: Any) -> Player:
    """Play what is told, in order: a meta, or a player."""
    left = list(results)

    def play(turn: Turn) -> Played:
        told = left.pop(0)
        return told(turn) if callable(told) else replied(told)

    return play


def take(world: World, thread: ThreadId, *results: Any) -> list[str]:
    """Take a step for each of *results*, and return the roles that were asked."""
    asked: list[str] = []
    play = in_order(*results)

    def noted(turn: Turn) -> Played:
        asked.append(turn.role)
        return play(turn)

    for _ in results:
        try:
            world.step(thread, noted)
        except TurnFailed:
            continue
    return asked
