"""A check that came from elsewhere runs only if it is trusted here, like an agent."""

from collections.abc import Callable
from pathlib import Path

from commands.agent_run.test_run_checks import ANSWER, CHECKED
from commands.world import World
from refusing import refuses

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.model.names import ThreadId
from uwf_git.store.store import create_store
from uwf_git.store.trust import is_trusted

CHECK = {"command": "touch checked"}


def fetched(world: World, tmp_path: Path, git: Callable[..., str]) -> tuple[World, ThreadId]:
    """Return another store with a thread from the first, whose role has a check."""
    workflow = world.put(CHECKED.replace("CHECKS", CHECK["command"])).workflow
    agent = world.program(ANSWER)
    thread = world.start(agent, workflow=workflow)
    there = World(
        world.place, create_store(str(tmp_path / "other.git")), world.caller, world.new_id
    )
    git("fetch", "-q", world.store.path, "refs/*:refs/*", cwd=Path(there.store.path))
    there.reopen()
    return there, thread


def test_check_of_a_fetched_thread_does_not_run_until_it_is_trusted(
    world: World, tmp_path: Path, git: Callable[..., str]
) -> None:
    there, thread = fetched(world, tmp_path, git)
    paid = there.program(f"touch paid; {ANSWER}")
    with refuses("check-not-trusted", match="touch checked") as caught:
        there.step(thread, agent_player(None), command=paid, workdir=str(world.place))
    assert "--trust" in (caught.value.hint or "")
    assert not (world.place / "paid").exists()

    there.step(thread, agent_player(None), command=paid, trust=True, workdir=str(world.place))

    assert (world.place / "checked").exists()
    assert is_trusted(there.store, CHECK, str(world.place))
