import pytest
from commands.world import World
from refusing import refuses

from uwf_git.commands.turn.turn import choose_workdir
from uwf_git.model.names import ThreadId

THREAD = ThreadId("01J00000000000000000000001")


def test_directory_is_remembered_once_it_was_named(world: World) -> None:
    (world.place / "sub").mkdir()

    first = choose_workdir(world.store, THREAD, str(world.place), named="sub")
    later = choose_workdir(world.store, THREAD, "/", named=None)

    assert first == later == str(world.place / "sub")


def test_thread_that_came_from_elsewhere_asks_for_one(world: World) -> None:
    with refuses("workdir-unknown") as caught:
        choose_workdir(world.store, THREAD, "/", named=None)

    assert f"uwf thread step {THREAD} --workdir PATH" in (caught.value.hint or "")


def test_wrong_directory_is_not_remembered(world: World) -> None:
    with refuses("not-a-directory"):
        choose_workdir(world.store, THREAD, "/", named="nowhere")

    with refuses("workdir-unknown"):
        choose_workdir(world.store, THREAD, "/", named=None)


@pytest.mark.parametrize("name", ["with space", "日本", "new\nline", "-dash", "\udcff"])
def test_any_name_of_a_directory_is_kept(name: str, world: World) -> None:
    (world.place / name).mkdir()

    choose_workdir(world.store, THREAD, str(world.place), named=name)

    assert choose_workdir(world.store, THREAD, "/", named=None) == str(world.place / name)
