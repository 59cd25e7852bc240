"""Crash logs: the trace of a bug, in a file that the user can send.

Nothing here raises, since that would hide the original error. The command line and the environment
are left out, because prompts and secrets travel there.
"""

import contextlib
import os
import platform
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from uwf_git.cli.session.installed_version import installed_version


def write_crash_log(error: BaseException, environ: Mapping[str, str]) -> str | None:
    """Write the trace of *error* and all versions to a new file; return its path, None if no place.

    Only the user may read it: a trace can quote what was being worked on.
    """
    with contextlib.suppress(Exception):
        content = _content(error).encode(errors="backslashreplace")
        name = f"crash-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-"
        for directory in _places(environ):
            with contextlib.suppress(OSError):
                return _write_new(directory, name, content)
    return None


def trace_of(error: BaseException) -> str:
    """Return the trace of *error* as Python writes it."""
    with contextlib.suppress(Exception):
        return "".join(traceback.format_exception(error))
    return type(error).__name__


def last_words(error: BaseException) -> str:
    """Return the type and message of *error* as one line."""
    with contextlib.suppress(Exception):
        return " ".join(traceback.format_exception_only(error)[-1].split())
    return type(error).__name__


def _places(environ: Mapping[str, str]) -> Iterator[Path]:
    # The XDG specification says that a relative path is to be ignored.
    state = environ.get("XDG_STATE_HOME", "")
    home = environ.get("HOME", "")
    if os.path.isabs(state):
        yield Path(state, "uwf")
    elif os.path.isabs(home):
        yield Path(home, ".local", "state", "uwf")
    yield Path(tempfile.gettempdir())


def _write_new(directory: Path, name: str, content: bytes) -> str:
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, path = tempfile.mkstemp(prefix=name, suffix=".log", dir=directory)
    with open(descriptor, "wb") as file:
        file.write(content)
    return path


def _content(error: BaseException) -> str:
    versions = "".join(f"{name} {version}\n" for name, version in _versions())
    return f"{versions}\n{trace_of(error)}"


def _versions() -> Iterator[tuple[str, str]]:
    yield "uwf", installed_version()
    yield "python", sys.version.replace("\n", " ")
    yield "platform", platform.platform()
    try:
        needed = requires("uwf") or []
    except PackageNotFoundError:
        needed = []
    for requirement in needed:
        if ";" not in requirement:
            # PEP 508: a name ends where its bounds begin.
            name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
            yield name, installed_version(name)
