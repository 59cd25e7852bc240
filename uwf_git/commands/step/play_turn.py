"""Play a turn: the agent answers, and the schema and the checks of its role check that."""

from uwf_git.commands.agent_run.run_checks import leave_unchecked
from uwf_git.commands.turn.check_meta import check_reply
from uwf_git.commands.turn.input_files import KIND, read_input_files
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.errors import name_some
from uwf_git.store.threads.definitions import get_workflow


def refuse_inputs(turn: Turn) -> Played | None:
    """Return the failed turn of an agent whose input files are not all there; None: they are."""
    files = read_input_files(
        turn.snapshot, turn.present, turn.place, turn.asked, workdir=turn.workdir
    )
    bad = [f"{each.path} {each.problem}" for each in files if each.problem is not None]
    if not bad:
        return None
    return Played(
        reply=None,
        started_ms=turn.snapshot.commit.time_s * 1000,
        duration_ms=0,
        error={"kind": KIND, "message": f"its inputFiles: {name_some(bad)}"},
        hint="inputFiles are texts below the work directory, up to 1 MiB each; no agent has run",
    )


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
