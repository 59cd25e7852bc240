"""Process starts: telling a process from a later one with the same number.

Owns: reading when a process began. Source: proc(5), field 22 of /proc/<pid>/stat.
"""

_ENDED = ("Z", "X")


def read_process_start(pid: int) -> int | None:
    """Give when the process *pid* began, in clock ticks since the machine started.

    None if there is no such process, it has ended and nobody has taken leave of it (a zombie holds
    no lock any more), or there is no /proc to ask.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            stat = file.read()
    except OSError:
        return None
    # The second field is the name in parentheses, which may hold anything.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in _ENDED else int(fields[19])
