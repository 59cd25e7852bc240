from cli.program import Uwf
from commands.at_work import BEGUN, HANG, SAY_PID, AtWork, at_work, is_alive, pids
from commands.world import World

from uwf_git.cli.session.caller import caller_of
from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store


def under_way(uwf: Uwf, script: str = HANG) -> AtWork:
    """Start a thread whose step runs in another process."""
    thread = ThreadId(uwf.begun(uwf.agent(f"{SAY_PID}echo thinking >&2; {BEGUN}{script}")))
    store = open_store(str(uwf.session.repo))
    world = World(uwf.place, store, caller_of(uwf.session), uwf.session.new_thread_id)
    return at_work(world, thread)


def test_pause_prints_the_thread_as_it_is_then(uwf: Uwf) -> None:
    thread = uwf.begun()
    shown = uwf.json("thread", "show", thread)

    paused = uwf.json("thread", "pause", thread, "-m", "wait for Ann")

    assert paused == {
        "workflow": shown["workflow"],
        "thread": thread,
        "head": shown["head"],
        "status": "paused",
    }
    assert "wait for Ann" in uwf("thread", "read", thread).out


def test_step_that_is_under_way_is_noted_and_now_ends_it(uwf: Uwf) -> None:
    at = under_way(uwf)
    resume = f"`uwf thread resume {at.thread}` lets it go on, then `uwf thread run {at.thread}`"

    ran = uwf("thread", "pause", at.thread)
    assert ran.status == 0
    assert ran.err == (
        "note: writer is still at work, and its step will be recorded; "
        f"`uwf thread pause {at.thread} --now` ends it\n"
        f"next: {resume}\n"
    )
    assert is_alive(pids(at.world)[0])

    ran = uwf("thread", "pause", at.thread, "--now", "-m", "it went astray")
    assert (ran.status, ran.err) == (0, f"next: {resume}\n")
    assert at.living() == []
    status, told = at.finish()
    assert status == 130
    assert told.endswith(
        "error: writer failed (agent): it was stopped: it went astray\n"
        "hint: the thread is paused: "
        f"`uwf thread resume {at.thread}` lets it go on\n"
    )
