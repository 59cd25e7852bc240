"""A watchdog shell in a program's process group that kills the program when we die.

It reads from a pipe whose write end only we hold. When the pipe breaks, it kills every process
that carries the program's mark in its environment, then the group. Shell messages about the
program's end (`Terminated`) are discarded.
"""

import os

# $1 is the mark, which finds processes that left the group (Linux); it is exported after the
# watchdog was forked, so that the watchdog is killed last. 4 is the program's stderr. The trap
# keeps the shell alive on SIGTERM to the group, so that it returns the program's status; the last
# line keeps it from becoming the program by exec.
_WATCHDOG = """\
trap : TERM INT HUP
{ read -r line <&3 || {
    for round in 1 2 3; do
        for found in $(grep -ls "UWF_NESTED=$1" /proc/[0-9]*/environ); do
            found=${found#/proc/}; kill -s KILL "${found%/environ}"
        done
    done
    kill -s KILL 0
}; } >/dev/null 2>&1 4>&- &
export UWF_NESTED="$1"; shift
"""

_BY_STDIN = "exec 3<&0 </dev/null 4>&2 2>/dev/null\n"
_BY_NUMBER = 'exec 3<"/dev/fd/$0" 4>&2 2>/dev/null\n'

# $0 is the folder.
_WITH_FILES = """\
(exec 3<&- 4>&- <"$0/stdin" >>"$0/stdout" 2>>"$0/stderr"; exec "$@")
exit $?
"""
_WITH_STREAMS = """\
(exec 2>&4 3<&- 4>&-; exec "$@")
exit $?
"""


def watched_by_stdin(folder: str, argv: tuple[str, ...]) -> list[str]:
    """Return the argv of a shell that runs *argv*; the watchdog's pipe is the shell's stdin.

    The program's stdin, stdout and stderr are the files of these names in *folder*.
    """
    return ["/bin/sh", "-c", _BY_STDIN + _WATCHDOG + _WITH_FILES, folder, _mark(), *argv]


def watched_by_descriptor(pipe: int, argv: tuple[str, ...]) -> list[str]:
    """Return the argv of a shell that runs *argv*; *pipe* is the watchdog's descriptor.

    The program's stdin, stdout and stderr are the shell's.
    """
    # Opened by name, since some shells duplicate one-digit descriptors only.
    return ["/bin/sh", "-c", _BY_NUMBER + _WATCHDOG + _WITH_STREAMS, str(pipe), _mark(), *argv]


def _mark() -> str:
    return os.urandom(16).hex()
