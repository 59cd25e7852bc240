from pathlib import Path

from commands.turns import begin_turn
from commands.world import World

from uwf_git.agents.run_files import RunLost
from uwf_git.commands.agent_run.runs import (
    find_player,
    forget_run,
    is_finished,
    list_finished_runs,
    read_state,
)
from uwf_git.store.oid import Oid
from uwf_git.store.threads.run_dir import get_run_dir

OTHER = Oid("5" * 40)


def test_run_without_an_exit_status_is_lost_and_not_finished(world: World) -> None:
    thread = world.begun()
    run = get_run_dir(world.store, thread, begin_turn(world, thread))

    assert isinstance(read_state(run), RunLost)
    assert not is_finished(run)
    assert find_player(run) == ("writer", "nobody")
    assert find_player(get_run_dir(world.store, thread, OTHER)) == (None, None)


def test_finished_run_of_another_commit_is_not_forgotten(world: World) -> None:
    thread = world.begun()
    commit = begin_turn(world, thread)
    other = Path(get_run_dir(world.store, thread, OTHER).path)
    other.mkdir()

    (other / "exit").write_text("0\n")
    forget_run(world.store, thread, commit)

    assert list_finished_runs(world.store, thread) == [OTHER]
