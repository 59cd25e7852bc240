"""A crowd: many processes that do the same thing at the same moment.

Owns: starting them at once, and what each of them tells. Knows nothing of: what they do.
Always true: every one has ended, and has told, when `at_once` comes back.
"""

import json
import os
from collections.abc import Callable
from typing import Any

LONGEST_S = 60


def at_once(size: int, act: Callable[[int], Any]) -> list[Any]:
    """Let *size* forked processes call *act* with their number, all at once.

    Returns:
        What each of them gave, in the order of the numbers; it must be JSON.
    """
    gate_read, gate_write = os.pipe()
    children = [_fork(number, act, (gate_read, gate_write)) for number in range(size)]
    os.close(gate_read)
    os.close(gate_write)
    told = []
    for pid, answer in children:
        with os.fdopen(answer, "rb") as file:
            content = file.read()
        os.waitpid(pid, 0)
        told.append(json.loads(content))
    return told


def _fork(number: int, act: Callable[[int], Any], gate: tuple[int, int]) -> tuple[int, int]:
    answer_read, answer_write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(answer_write)
        return pid, answer_read
    os.close(answer_read)
    os.close(gate[1])
    try:
        # At the end of the gate's last writer, which is the parent, all begin.
        os.read(gate[0], 1)
        told = act(number)
    except BaseException as error:  # noqa: BLE001 - the parent tells what went wrong
        told = f"{type(error).__name__}: {error}"
    with os.fdopen(answer_write, "wb") as file:
        file.write(json.dumps(told).encode())
    os._exit(0)
