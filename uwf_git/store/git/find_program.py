"""Find a program on the PATH. Apart from program.py, since that imports subprocess (4 ms)."""

import os
from collections.abc import Mapping


def find_program(name: str, environ: Mapping[str, str]) -> str | None:
    if os.path.dirname(name):
        return name if os.access(name, os.X_OK) else None
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder or os.curdir, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None
