"""Play a turn: the agent answers, and the schema and the checks of its role check that."""

from uwf_git.commands.agent_run.run_checks import leave_unchecked
from uwf_git.commands.turn.check_meta import check_reply
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.store.threads.definitions import get_workflow


def play_turn(turn: Turn, play: Player) -> Played:
    """Play *turn* by *play*, and check the answer; a refused one is a failed turn."""
    played = answer_turn(turn, play)
    if played.reply is None or not turn.asked.checks:
        return played
    return play(turn._replace(answered=played))


def answer_turn(turn: Turn, play: Player) -> Played:
    """Play *turn* by *play*, and check the meta; the checks of its role do not run."""
    workflow = get_workflow(turn.snapshot, turn.present.workflow)
    return check_reply(turn, workflow, play(turn))


def without_checks(turn: Turn, played: Played) -> Played:
    """Return an answer that comes too late to be checked: refused if its role has checks."""
    if played.reply is None or not turn.asked.checks:
        return played
    return leave_unchecked(played, "the thread has moved on, or ends")
