import os
from pathlib import Path

import pytest
from commands.world import Git, World
from refusing import refuses

from uwf_git.commands.inspect.list import ListRequest, list_thread_rows
from uwf_git.commands.remove import plan_removals, remove_thread
from uwf_git.model.names import ThreadId
from uwf_git.store.git.config import set_config
from uwf_git.store.locks import hold_lock
from uwf_git.store.threads.heads import HeadMoved, NoSuchThread
from uwf_git.store.threads.history import list_preserved, preserve_commit
from uwf_git.store.threads.local_files import log_path


@pytest.fixture
def ended(world: World) -> ThreadId:
    """Return a thread that was killed after a step."""
    thread = world.stepped()
    world.kill(thread)
    return thread


def left(world: World, thread: str, git: Git) -> list[str]:
    """List what a store has that is called after a thread."""
    store = Path(world.store.path)
    refs = git("for-each-ref", "--format=%(refname)", cwd=store).splitlines()
    files = (str(path) for path in store.rglob(f"*{thread}*"))
    return [each for each in [*refs, *files] if thread in each]


def test_nothing_of_it_is_left_but_its_commits(world: World, ended: ThreadId, git: Git) -> None:
    tip = world.tip(ended)
    run = Path(world.store.local_path("run", ended, tip))
    run.mkdir(parents=True)
    (run / "exit").write_text("0\n")
    log = Path(log_path(world.store, ended))
    log.parent.mkdir()
    log.write_text("driven\n")

    removed = world.remove(ended[:26])[0]

    assert left(world, ended, git) == []
    assert removed.removal.commit == tip
    assert (removed.removal.status, removed.removal.depth) == ("killed", 1)
    assert removed.remotes == []
    assert git("cat-file", "-t", tip, cwd=Path(world.store.path)) == "commit\n"
    assert list_thread_rows(world.store, ListRequest(archived=True)) == []


def test_damaged_active_thread_stays_with_a_hint_how_to_remove_it(
    world: World, ended: ThreadId
) -> None:
    assert ended
    active = world.start()
    Path(f"{world.store.path}/refs/threads/{active}").write_text(f"{'0' * 39}1\n")

    with refuses("thread-still-active", match="active, damaged, and") as caught:
        plan_removals(world.store, [active])

    assert caught.value.hint is not None
    assert f"`git update-ref -d refs/threads/{active}`" in caught.value.hint


def test_active_ref_that_was_left_over_does_not_bring_it_back(
    world: World, ended: ThreadId, git: Git
) -> None:
    git(
        "update-ref", f"refs/threads/{ended}", f"refs/archive/{ended}~1",
        cwd=Path(world.store.path),
    )  # fmt: skip

    world.remove(ended)

    assert left(world, ended, git) == []
    with pytest.raises(NoSuchThread):
        plan_removals(world.store, [ended])


def test_remote_tracking_refs_are_removed_and_reported(
    world: World, ended: ThreadId, git: Git
) -> None:
    store = Path(world.store.path)
    tip = world.tip(ended)
    set_config(f"{store}/config", "remote.hub.url", "https://example.com/x.git")
    # Of all but the first, git has removed the settings.
    for name, place in (("hub", "archive"), ("mirror", "threads"), ("team/old", "archive")):
        git("update-ref", f"refs/uwf/remotes/{name}/{place}/{ended}", tip, cwd=store)
        if name == "hub":
            git("pack-refs", "--all", cwd=store)
    git("update-ref", f"refs/uwf/remotes/empty/archive/{world.start()}", tip, cwd=store)
    world.reopen()

    assert world.remove(ended)[0].remotes == ["hub", "mirror", "team/old"]
    assert left(world, ended, git) == []


def test_work_that_was_kept_beside_it_goes_too(world: World, ended: ThreadId, git: Git) -> None:
    preserve_commit(world.store, ended, world.snapshot(ended).commit.parents[0])

    world.remove(ended)

    assert list_preserved(world.store, ended) == []
    assert git("for-each-ref", "refs/uwf/kept", cwd=Path(world.store.path)) == ""


def test_thread_whose_agent_lives_stays(world: World, ended: ThreadId) -> None:
    folder = world.store.local_path("run", ended)
    os.makedirs(os.path.join(folder, "0" * 40))
    path = os.path.join(folder, "0" * 40 + ".alive")
    with hold_lock(path, wait=False), refuses("agent-still-runs"):
        world.remove(ended)
    assert world.snapshot(ended).record.status == "killed"
    assert len(world.remove(ended)) == 1


def test_thread_that_is_not_what_was_planned_stays(world: World, ended: ThreadId, git: Git) -> None:
    plan = plan_removals(world.store, [ended])[0]
    git("update-ref", f"refs/archive/{ended}", f"{plan.commit}~1", cwd=Path(world.store.path))

    with pytest.raises(HeadMoved):
        remove_thread(world.store, world.caller, plan)
    assert world.tip(ended) != plan.commit
