from pathlib import Path

from commands.turns import begin_turn
from commands.world import World

from uwf_git.commands.agent_run.runs import forget_run, list_finished_runs
from uwf_git.store.oid import Oid
from uwf_git.store.threads.run_dir import get_run_dir

OTHER = Oid("5" * 40)


def test_finished_run_of_another_commit_is_not_forgotten(world: World) -> None:
    thread = world.begun()
    commit = begin_turn(world, thread)
    other = Path(get_run_dir(world.store, thread, OTHER).path)
    other.mkdir()

    (other / "exit").write_text("0\n")
    forget_run(world.store, thread, commit)

    assert list_finished_runs(world.store, thread) == [OTHER]
