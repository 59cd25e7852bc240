"""Paths below the work directory, as somebody else names them."""

import os
import unicodedata


def resolve_inside(workdir: str, path: str) -> str | None:
    """Return *path* from *workdir*, normalized; None if it is not below it, or leads out by a link.

    The work directory itself is ``.``. An absolute path is fine if it is below.
    """
    if not path.strip() or "\0" in path:
        return None
    root, typed = os.path.realpath(workdir), os.path.abspath(workdir)
    # An absolute path may name the work directory as it was typed, links included.
    found = _relative(path, root) or _relative(path, typed)
    if found is None:
        return None
    # The last part may be a link, which is then itself meant; its folder may not lie elsewhere.
    above = os.path.realpath(os.path.dirname(os.path.join(root, found)))
    is_below = found == os.curdir or _relative(above, root) is not None
    return found if is_below else None


def _relative(path: str, base: str) -> str | None:
    try:
        found = os.path.relpath(os.path.normpath(os.path.join(base, path)), base)
    except ValueError:
        # Another drive of Windows.
        return None
    return None if found == os.pardir or found.startswith(os.pardir + os.sep) else found


def find_spelled(workdir: str, path: str) -> str | None:
    """Return the path that exists, also in the other form of Unicode (NFC, NFD); None if none does.

    *path* is one of ``resolve_inside``.
    """
    if os.path.lexists(os.path.join(workdir, path)):
        return path
    found = ""
    for part in path.split(os.sep):
        spelled = _spelled_in(os.path.join(workdir, found), part)
        if spelled is None:
            return None
        found = os.path.join(found, spelled)
    return found


def _spelled_in(folder: str, name: str) -> str | None:
    if os.path.lexists(os.path.join(folder, name)):
        return name
    if name.isascii():
        return None
    wanted = unicodedata.normalize("NFC", name)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return None
    return next((each for each in names if unicodedata.normalize("NFC", each) == wanted), None)
