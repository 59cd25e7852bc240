"""Note which tests run which lines, also in the programs that they start.

Every Python imports this at its start while the tests of a room are watched; pytest has it as a
plugin besides (PYTEST_DONT_REWRITE, since it has been imported by then). Only functions with a line
that is asked for are slowed down.
"""

import json
import os
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Protocol


class Report(Protocol):
    """What pytest tells of a part of a test; programs that tests start do without pytest."""

    failed: bool
    duration: float
    nodeid: str


FOLDER = "MUTANTS_WATCHED"
"""The variable that names the folder of what is asked for and what is noted."""

ASKED = "asked.json"
"""Names for what runs, by line and file: ``{"/a.py": {"7": ["name"]}}``."""

RAN = "ran.tsv"
"""A name, and a test that ran its line; no test: while a module was imported."""

DONE = "done.tsv"
"""``passed`` or ``failed``, seconds, and the test."""

# A test may put others in their place, to see what becomes of a full disk.
_open, _write, _close = os.open, os.write, os.close


class _Watcher:
    """Notes what this process runs."""

    def __init__(self, folder: Path) -> None:
        asked: dict[str, dict[str, list[str]]] = json.loads((folder / ASKED).read_text())
        self._asked = {
            path: {int(line): names for line, names in lines.items()}
            for path, lines in asked.items()
        }
        self._of_code: dict[CodeType, dict[int, list[str]]] = {}
        self._noted: set[tuple[str, str]] = set()
        self._ran = str(folder / RAN)

    def enter(self, frame: FrameType, _event: str, _value: Any) -> Any:
        """Watch the lines of a function if one of them is asked for."""
        code = frame.f_code
        lines = self._of_code.get(code)
        if lines is None:
            lines = self._of_code[code] = self._lines_of(code)
        return self._line if lines else None

    def _lines_of(self, code: CodeType) -> dict[int, list[str]]:
        asked = self._asked.get(code.co_filename, {})
        own = {line for _begin, _end, line in code.co_lines()}
        return {line: names for line, names in asked.items() if line in own}

    def _line(self, frame: FrameType, event: str, _value: Any) -> Any:
        if event == "line":
            for name in self._of_code[frame.f_code].get(frame.f_lineno, ()):
                self._note(name)
        return self._line

    def _note(self, name: str) -> None:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        if (name, test) not in self._noted:
            self._noted.add((name, test))
            _append(self._ran, f"{name}\t{test}\n")


def _append(path: str, line: str) -> None:
    """Write at once, since a process may end without warning."""
    file = _open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        _write(file, line.encode())
    finally:
        _close(file)


def start() -> None:
    """Watch this process from now on."""
    watcher = _Watcher(Path(os.environ[FOLDER]))
    threading.settrace(watcher.enter)
    sys.settrace(watcher.enter)


def pytest_runtest_logstart() -> None:
    """Watch again: Python stops if the stack overflows while it asks."""
    sys.settrace(threading.gettrace())


def pytest_runtest_logreport(report: Report) -> None:
    """Note how long each part of a test took, and whether it failed."""
    outcome = "failed" if report.failed else "passed"
    line = f"{outcome}\t{report.duration:.3f}\t{report.nodeid}\n"
    _append(str(Path(os.environ[FOLDER], DONE)), line)
