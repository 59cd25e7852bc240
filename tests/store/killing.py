"""Run an action in a child that is killed, or whose system calls fail, at a chosen moment.

A moment is each call by which Python asks the system to change something: open for writing, write,
rename, link, remove, mkdir, rmdir, truncate, lock, start a process. Reads and fsync are no moments:
a process killed before one leaves what it leaves when killed before the next change. Moments are
found by audit hooks, and by wrappers for calls that have none.
"""

import builtins
import io
import os
import pickle
import signal
import sys
from collections.abc import Callable
from typing import Any

_CHANGING = {
    "fcntl.flock",
    "os.chmod",
    "os.chown",
    "os.fork",
    "os.link",
    "os.mkdir",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.setxattr",
    "os.symlink",
    "os.truncate",
    "os.utime",
    "subprocess.Popen",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

# Changes without an audit event.
_PLAIN_WRITES = {"write", "writev", "pwrite", "pwritev", "sendfile", "copy_file_range"}

_TAKING_ROOM = {"open", "os.link", "os.mkdir", "os.rename", *_PLAIN_WRITES}

AtMoment = Callable[[int, str], None]
"""Called before each change with its number, from 1, and its description."""


def dies_at(moment: int, action: Callable[[], object]) -> bool:
    """Run *action* in a child that is killed at its *moment*-th moment; return whether it was."""

    def die(number: int, _what: str) -> None:
        if number == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    ended = in_child(lambda: watched(die, action))
    assert ended is None or ended is True, f"the action failed: {ended!r}"
    return ended is None


def moments_of(action: Callable[[], object]) -> list[str]:
    """Run *action* in a child and return the changes that it made, each of which is a moment."""
    told: list[str] = []

    def trace() -> list[str]:
        watched(lambda _number, what: told.append(what), action)
        return told

    found = in_child(trace)
    assert isinstance(found, list), f"the action failed: {found!r}"
    return found


def watched(at_moment: AtMoment, action: Callable[[], object]) -> bool:
    """Run *action*, with *at_moment* called before each change; only for use in a child.

    Audit hooks tell of nearly everything. They stay for ever, and so do the wrappers of what
    they do not tell of: plain writes, and that a file has been opened and is empty yet.
    """
    mine, count, is_on = os.getpid(), 0, True

    def count_one(what: str) -> None:
        nonlocal count
        # A child of the action inherits the hooks, but is another process.
        if is_on and os.getpid() == mine:
            count += 1
            at_moment(count, what)

    def audit(event: str, args: tuple[Any, ...]) -> None:
        if is_on and _changes(event, args):
            count_one(f"{event} {args}")

    def counted_before(write: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **named: Any) -> Any:
            count_one(write.__name__)
            return write(*args, **named)

        return counted

    def counted_open(*args: Any, **named: Any) -> Any:
        file = open_file(*args, **named)
        if file.writable():
            count_one("write to the file opened last")
        return file

    open_file = io.open
    builtins.open = io.open = counted_open
    for name in _PLAIN_WRITES & set(dir(os)):
        setattr(os, name, counted_before(getattr(os, name)))
    sys.addaudithook(audit)
    try:
        action()
    finally:
        is_on = False
    return True


def _changes(event: str, args: tuple[Any, ...]) -> bool:
    if event == "open":
        return bool((args[2] or 0) & _WRITING)
    # What cannot but fail is asked, and changes nothing.
    if event == "os.utime":
        return os.path.exists(args[0])
    if event == "os.mkdir":
        return not os.path.lexists(args[0])
    if event == "os.rename":
        return os.path.isdir(os.path.dirname(args[1]) or os.curdir)
    return event in _CHANGING


def in_child(action: Callable[[], object]) -> object:
    """Run *action* in a child; return its result or exception, None if it was killed."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _answer(writer, action)
    os.close(writer)
    with open(reader, "rb") as file:
        answer = file.read()
    status = os.waitpid(pid, 0)[1]
    return pickle.loads(answer) if os.WIFEXITED(status) and answer else None


def _answer(writer: int, action: Callable[[], object]) -> None:
    try:
        try:
            answer: object = action()
        except BaseException as error:  # noqa: BLE001 - it is reported to the parent
            answer = error
        try:
            whole = pickle.dumps(answer)
        except Exception:  # noqa: BLE001 - what cannot be handed over is at least named
            whole = pickle.dumps(repr(answer))
        with open(writer, "wb") as file:
            file.write(whole)
    finally:
        os._exit(0)


def fails_at(moment: int, error: OSError, action: Callable[[], object]) -> object:
    """Run *action* in a child whose system calls fail from its *moment*-th moment on.

    Every change that takes room fails then; to remove something never does. Gives what was
    raised, as text, or None if nothing was.
    """

    def refuse(number: int, what: str) -> None:
        if number >= moment and what.split(" ", 1)[0] in _TAKING_ROOM:
            raise OSError(*error.args)

    def attempt() -> str | None:
        try:
            watched(refuse, action)
        except Exception as raised:  # noqa: BLE001 - it is reported
            return f"{type(raised).__name__}: {raised}"
        return None

    return in_child(attempt)
