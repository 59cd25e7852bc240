from commands.world import DEMO, World
from refusing import refuses

from uwf_git.commands.control.steer import kill_thread
from uwf_git.commands.inspect.list import (
    MOST_THREADS,
    Candidate,
    offer_remotes,
    offer_roles,
    offer_threads,
    offer_workflows,
)


def test_threads_are_offered_by_id_or_else_by_status_workflow_and_task(world: World) -> None:
    thread = world.begun()
    ended = world.start()
    kill_thread(world.store, world.caller, ended)

    task = world.snapshot(thread).get_start().payload["prompt"]
    offered = offer_threads(world.store, "", archived=True)

    assert offered == [
        Candidate(ended, f"killed, demo: {task}"),
        Candidate(thread, f"ready, demo: {task}"),
    ]
    assert offer_threads(world.store, thread.lower()) == offered[1:]
    assert offer_threads(world.store, "KILLED", archived=True) == offered[:1]
    assert offer_threads(world.store, "", statuses=frozenset({"killed"})) == offered[:1]
    assert offer_threads(world.store, "no such task") == []


def test_no_more_threads_are_offered_than_a_person_reads(world: World) -> None:
    world.put()
    newest = [world.start() for _ in range(MOST_THREADS + 1)][-1]

    offered = offer_threads(world.store, "")

    assert (len(offered), offered[0].word) == (MOST_THREADS, newest)


def test_workflows_and_their_roles_are_offered_with_what_they_are(world: World) -> None:
    world.put()
    world.put(DEMO.replace("name: demo", "name: other"))
    cwd = str(world.store.path)

    (demo,) = offer_workflows(world.store, "de", cwd=cwd)

    assert demo.word == "demo"
    assert demo.meaning in DEMO
    assert offer_roles(world.store, "w", cwd=cwd, workflow="demo") == [
        Candidate("writer", "of demo")
    ]
    (writer,) = offer_roles(world.store, "w", cwd=cwd)
    assert {"demo", "other"} == set(writer.meaning.removeprefix("of ").split(", "))
    assert offer_remotes(world.store, "") == []
    with refuses("no-such-workflow"):
        offer_roles(world.store, "", cwd=cwd, workflow="third")
