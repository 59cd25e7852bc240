"""What follows a command that wrote (commands/after.py), with its warnings as notes."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from uwf_git.cli.output.screen import Painted, note, screen_of
from uwf_git.cli.session import Session
from uwf_git.commands.after import follow_up, warn_of_files, warn_of_guess, warn_of_worktrees
from uwf_git.commands.inspect.show import Stop, find_stop, read_stop
from uwf_git.commands.turn.next_move import Advice
from uwf_git.errors import StoreDamaged
from uwf_git.model.text import one_line
from uwf_git.store.store import Store
from uwf_git.store.threads.history import read_snapshot
from uwf_git.store.threads.naming import read_short_ids

if TYPE_CHECKING:
    from uwf_git.commands.background import AtRest
    from uwf_git.commands.turn.turn import ThreadResult


def follow_up_noted(
    store: Store, environ: Mapping[str, str], tell: Callable[[str], None] = note
) -> None:
    """Announce and pack what was done through *store*, and *tell* what went wrong.

    The boundary calls it at the end of each command; a drive also calls it after each step.
    """
    guess = warn_of_guess(store, environ)
    for warning in filter(None, (guess, *warn_of_worktrees(store), *warn_of_files(store))):
        tell(f"warning: {warning}")
    problem = follow_up(store, environ)
    if problem is not None:
        tell(f"note: {problem}")


# The line that ends a command which leaves a thread: what to type next.


def stop_after(session: Session, store: Store, result: "ThreadResult") -> Stop:
    """Return where *result* leaves a thread, with no advice if that cannot be read: it is done."""
    try:
        stop = find_stop(store, read_snapshot(store, result.commit), default=session.agent)
    except StoreDamaged:
        return Stop(None, Advice("", is_usual=True))
    return with_short_id(session, store, result.thread, stop)


def with_short_id(session: Session, store: Store, thread: str, stop: Stop) -> Stop:
    """Return *stop* with the short id of *thread* in its advice, where a person reads it."""
    if not session.is_screen:
        return stop
    text = stop.advice.text.replace(thread, read_short_ids(store).shorten(thread))
    return stop._replace(advice=stop.advice._replace(text=text))


def note_next(session: Session, store: Store, thread: str, *, is_called: bool = False) -> None:
    """Print which command fits *thread* now, as ``tell_stop``."""
    try:
        stop = read_stop(store, thread, default=session.agent)
    except StoreDamaged:
        # The command is done.
        return
    tell_stop(session, with_short_id(session, store, thread, stop), is_called=is_called)


def describe_result(session: Session, store: Store, result: "ThreadResult") -> Painted:
    """Return what a command did to a thread as a person reads it: status, id, what happened."""
    screen = screen_of(session)
    mark = screen.name_status(result.status)
    said = f"{result.role}: {result.said}" if result.role is not None else result.said
    thread = read_short_ids(store).shorten(result.thread)
    return Painted(f"{screen.paint(mark.text, mark.style)}  {thread}  {one_line(said)}")


def view_result(result: "ThreadResult | AtRest") -> dict[str, Any]:
    """Return what every document of a thread begins with."""
    return {name: getattr(result, name) for name in ("workflow", "thread", "head", "status")}


def tell_stop(session: Session, stop: Stop, *, is_called: bool = False) -> None:
    """Print which command fits at *stop*.

    Scripts call some commands again and again (*is_called*): outside of a terminal these print it
    only if a person has to do something; the document has the next role.
    """
    is_needed = session.stderr_is_tty or not is_called or not stop.advice.is_usual
    if stop.advice.text and is_needed:
        note(f"next: {stop.advice.text}")
