"""The line that tells the next command: who is told it, and how its store is named.

Every stop with what it advises is in golden/screens/scenes/stops.txt.
"""

import pytest
from cli.program import Uwf
from commands.at_work import BEGUN, HANG, SAY_PID, AtWork, at_work
from commands.world import World

from uwf_git.cli.caller import caller_of
from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store


@pytest.mark.parametrize(
    ("commands", "is_told"),
    [
        ("step T", False),
        ("step T\nstep T\nstep T", False),
        ("wait T", False),
        ("kill T", False),
        ("amend T --agent writer=human\nwait T", True),
        ("pause T", True),
        ("pause T\nresume T", True),
        ("fork T", True),
        ("run T --until writer", True),
    ],
)
def test_commands_that_scripts_repeat_say_it_elsewhere_only_if_a_person_is_needed(
    commands: str, *, is_told: bool, uwf: Uwf
) -> None:
    thread = uwf.begun()

    for command in commands.splitlines():
        ran = uwf("thread", *command.replace("T", thread).split())

    assert ("next: " in ran.err) is is_told


def under_way(uwf: Uwf) -> AtWork:
    """Start a thread whose step runs in another process."""
    thread = ThreadId(uwf.begun(uwf.agent(f"{SAY_PID}echo thinking >&2; {BEGUN}{HANG}")))
    store = open_store(str(uwf.session.repo))
    world = World(uwf.place, store, caller_of(uwf.session), uwf.session.new_thread_id)
    return at_work(world, thread)


def test_step_that_another_process_ends_says_so(uwf: Uwf) -> None:
    at = under_way(uwf)
    uwf.json("thread", "kill", at.thread, "-m", "of no use")

    _status, told = at.finish()

    assert told.endswith(
        f"hint: the thread is being ended: `uwf thread show {at.thread}` tells by whom, and "
        f"`uwf thread fork {at.thread}` continues it in a new thread\n"
    )
    shown = uwf.json("thread", "show", at.thread)
    assert (shown["by"], shown["reason"]) == ("C O Mitter <committer@example.com>", "of no use")


def test_thread_at_work_is_to_be_waited_for(uwf: Uwf) -> None:
    at = under_way(uwf)

    ran = uwf("thread", "retry", at.thread)

    uwf.json("thread", "kill", at.thread)
    at.finish()
    assert ran.err.endswith(f"hint: `uwf thread wait {at.thread}` waits until it stops\n")


def test_what_is_advised_names_the_store_that_was_typed(uwf: Uwf) -> None:
    store, thread = uwf.session.repo, uwf.begun(uwf.agent("exit 7"))
    uwf.json("config", "set", "retries", "0")
    given = ("thread", "run", thread)
    ran = uwf(*given, "--repo", str(store), repo=None)
    assert f"`uwf --repo {store} thread retry {thread}" in ran.err
    assert "--repo" not in uwf(*given).err
    shown = uwf("--repo", str(store), "thread", "show", thread, "--format", "text").out
    assert f"next: `uwf --repo {store} thread" in shown
    nothing = uwf("--repo", str(store), "ps", "--format", "text", repo=None)
    assert nothing.err == f"nothing runs; `uwf --repo {store} thread list` shows the threads\n"


def test_end_of_a_drive_names_the_store_that_was_typed(uwf: Uwf) -> None:
    store, thread = uwf.session.repo, uwf.begun()
    there = {"stdout_is_tty": True, "output_format": "text"}
    ran = uwf("--repo", str(store), "thread", "run", thread, repo=None, **there)
    assert f"\n  uwf --repo {store} thread read " in ran.out
    assert f"    uwf --repo {store} thread graph " in ran.out
