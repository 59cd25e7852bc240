"""Replace files whole: a reader sees the old content or the new one."""

import os
from contextlib import suppress

IGNORED = ".gitignore"
OUR_FOLDERS = (".state", ".plugins")
"""Folders that hold nothing of the project, whoever made them."""


def replace_whole(path: str, content: bytes) -> None:
    """Write *content* to *path*, with the folders that are missing; its mode stays.

    Raises:
        OSError: the system refused; the old file is unchanged.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.{os.urandom(6).hex()}.tmp"
    try:
        with open(temporary, "xb") as file:
            file.write(content)
        with suppress(FileNotFoundError):
            os.chmod(temporary, os.stat(path).st_mode & 0o777)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def replace_if_changed(path: str, content: bytes) -> bool:
    """Replace *path* unless it holds *content* already; return whether it did.

    Raises:
        OSError: the system refused; the old file is unchanged.
    """
    with suppress(OSError), open(path, "rb") as file:
        if file.read() == content:
            return False
    replace_whole(path, content)
    return True


def keep_out_of_git(folder: str) -> None:
    """Let *folder* ignore itself in git if it is ours: it is not there yet, or has our name."""
    path = os.path.join(folder, IGNORED)
    is_ours = os.path.basename(folder) in OUR_FOLDERS or not os.path.lexists(folder)
    if is_ours and not os.path.lexists(path):
        replace_whole(path, b"*\n")
