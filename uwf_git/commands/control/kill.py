"""`uwf thread kill`: end a thread and archive it; a running agent is stopped first.

No step can begin meanwhile. What a stopped agent printed is recorded first, and so is what the
agent of a dead engine has finished. An agent may kill its own thread.
"""

from uwf_git.commands.caller import Caller
from uwf_git.commands.step.end_by_kill import end_by_kill
from uwf_git.commands.turn.active_thread import read_active
from uwf_git.commands.turn.turn import ThreadResult
from uwf_git.store.store import Store


def kill_thread(store: Store, caller: Caller, text: str, *, reason: str = "") -> ThreadResult:
    """End a thread and archive it; stop its agent first.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId, ThreadNotActive: no active thread matches.
        ThreadBusy: another process is ending the thread, or the engine does not end.
        EndedElsewhere: the thread has ended at a remote, without the commits made here.
        AgentLeftRunning: the engine is dead and its agent cannot be stopped from here: another
            user or machine runs it, or its pid is unknown.
        HeadMoved: other processes moved the head at every try.
    """
    return end_by_kill(store, caller, read_active(store, text)[0].thread, reason=reason)
