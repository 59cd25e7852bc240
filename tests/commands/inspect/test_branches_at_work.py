"""Who works on branches: `ps`, `wait` and `logs` of their parent."""

import pytest
from commands.inspect.test_branches import split_of
from commands.inspect.test_context_of_flows import branch_of
from commands.step.test_flows import script
from commands.turns import begin_turn
from commands.world import World, fails

from uwf_git.commands.agent_run.running import list_running, running_rows
from uwf_git.commands.inspect.logs import LogPiece, LogRequest, follow_logs, read_logs
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.lock import lock_drive, lock_thread


@pytest.fixture
def thread(world: World) -> ThreadId:
    thread = split_of(world)
    world.step(thread, script())
    return thread


def test_ps_of_a_parent_has_its_branches(world: World, thread: ThreadId) -> None:
    branch, other = branch_of(world, thread, 0), world.begun()

    with lock_thread(world.store, branch, since_ms=0), lock_drive(world.store, other, since_ms=0):
        rows = {row["thread"]: row for row in running_rows(world.store, now_ms=1)}
        inside = [each.thread for each in list_running(world.store, thread)]

    assert set(rows) == {branch, other}
    assert rows[branch]["parentThread"] == thread
    assert "parentThread" not in rows[other]
    assert inside == [branch]


def test_logs_of_a_parent_are_followed_from_branch_to_branch(
    world: World, thread: ThreadId
) -> None:
    first, second = (branch_of(world, thread, number) for number in (0, 1))

    def log(branch: ThreadId, role: str, line: str) -> None:
        base = begin_turn(world, branch, role=role)
        with open(world.store.local_path("run", branch, base, "stderr"), "a") as file:
            file.write(f"{line}\n")

    with lock_thread(world.store, first, since_ms=0):
        log(first, "reviewer", "reviewing")
        pieces = (piece for piece in follow_logs(world.store, LogRequest(thread)) if piece.lines)
        told = [next(pieces)]
        log(second, "tester", "testing")
        told.append(next(pieces))

    assert [*told, *pieces] == [
        LogPiece("reviewer (nobody), branch 0 reviewer", ["reviewing"]),
        LogPiece("tester (nobody), branch 1 testing", ["testing"]),
    ]


def test_logs_of_a_parent_at_rest_are_those_of_the_branch_that_failed(
    world: World, thread: ThreadId
) -> None:
    world.step(thread, fails(stderr=b"out of luck\n"))
    branch_of(world, thread, 1)

    (piece,) = read_logs(world.store, LogRequest(thread))

    assert (piece.source, piece.lines) == (
        "tester, attempt 1, failed, branch 1 testing",
        ["out of luck"],
    )
