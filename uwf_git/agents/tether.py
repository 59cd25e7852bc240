"""Tethers: the shell between us and a program, which sees to it that it does not outlive us.

Owns: the words of that shell. Knows nothing of: who starts it, what the program is given.
Always true: in the program's group a shell waits for a pipe to break, the tether, whose other end
nobody but us holds: our death, however it comes, makes it kill whatever carries the program's
mark, and the group. What a shell says of a program's end (`Terminated`) is said to nobody: it is
none of the program's words.
"""

import os

# $1 is the mark, by which those are found who left the group (Linux); it is exported after the
# waiting shell was forked, so that this one goes last. 4 is the program's stderr. The trap keeps
# the shell alive when the group is asked to stop, so that it can tell the program's status; the
# last line keeps it from becoming the program.
_WAITING = """\
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


def tether_by_stdin(folder: str, argv: tuple[str, ...]) -> list[str]:
    """Give the call of a shell that runs *argv* on a tether, which is the shell's stdin.

    The program's stdin, stdout and stderr are the files of these names in *folder*.
    """
    return ["/bin/sh", "-c", _BY_STDIN + _WAITING + _WITH_FILES, folder, _mark(), *argv]


def tether_by_number(tether: int, argv: tuple[str, ...]) -> list[str]:
    """Give the call of a shell that runs *argv* on the open file *tether*, a pipe's reading end.

    The program's stdin, stdout and stderr are the shell's.
    """
    # Not duplicated, as stdin is: some shells have one-digit numbers only.
    return ["/bin/sh", "-c", _BY_NUMBER + _WAITING + _WITH_STREAMS, str(tether), _mark(), *argv]


def _mark() -> str:
    return os.urandom(16).hex()
