"""The output of checks in the log of a turn: a heading with the command, then what it printed."""

CHECK = "check"
"""The kind of a failed attempt whose answer a check refused."""

_MARK = "$ "


def write_section(command: str, output: bytes) -> bytes:
    """Return what a check adds to the log; it begins on a line of its own."""
    heading = f"\n{_heading(command)}\n".encode(errors="replace")
    ending = b"" if not output or output.endswith(b"\n") else b"\n"
    return heading + output + ending


def find_last_output(log: str, commands: tuple[str, ...]) -> str:
    """Return what the newest check among *commands* printed, from a log; "" if there is none."""
    places = [(log.rfind(f"\n{_heading(each)}\n"), each) for each in commands]
    place, command = max(places, default=(-1, ""))
    return "" if place < 0 else log[place + len(_heading(command)) + 2 :]


def find_outputs(log: str, commands: tuple[str, ...]) -> str:
    """Return what the checks of an answer printed, from the log of its turn, each with its heading.

    Checks that printed nothing are left out; "" if all did, or none is in the log.
    """
    headings = [f"\n{_heading(each)}\n" for each in commands]
    end = len(log)
    told: list[str] = []
    for heading in reversed(headings):
        place = log.rfind(heading, 0, end)
        if place >= 0:
            section = log[place + 1 : end]
            told += [section] if section[len(heading) - 1 :].strip() else []
            # The line break before a heading belongs to it.
            end = place + 1
    return "\n".join(each.strip("\n") for each in reversed(told))


def _heading(command: str) -> str:
    return _MARK + " ".join(command.split())
