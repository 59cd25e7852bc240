"""The file that opens the page: the token must not stand among the arguments of a browser.

`ps` shows arguments to every user of the machine; a file of mode 0600 is read by its owner alone.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from uwf_git.processes import read_process_start
from uwf_git.store.store import Store

_NAME = re.compile(r"ui-([0-9]{1,10})\.html")


@contextmanager
def hold_redirect(store: Store, address: str) -> Iterator[str]:
    """Yield the path of a page that leads to *address*; it is removed at the end."""
    folder = store.local_path()
    os.makedirs(folder, exist_ok=True)
    _remove_left(folder)
    path = os.path.join(folder, f"ui-{os.getpid()}.html")
    with suppress(FileNotFoundError):
        os.unlink(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(
                '<!doctype html>\n<meta charset="utf-8">\n<title>uwf</title>\n'
                f'<meta http-equiv="refresh" content="0; url={address}">\n'
                f'<p><a href="{address}" rel="noreferrer">The page of uwf</a></p>\n'
            )
        yield path
    finally:
        with suppress(OSError):
            os.unlink(path)


def _remove_left(folder: str) -> None:
    for name in os.listdir(folder):
        found = _NAME.fullmatch(name)
        if found and read_process_start(int(found[1])) is None:
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))
