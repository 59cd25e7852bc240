"""The user's own files about a store: below the XDG state directory, a folder for each store.

What a user decided about a store does not lie in the store, which others may have written.
Source: XDG Base Directory Specification, $XDG_STATE_HOME.
"""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress


def find_user_file(git_dir: str, environ: Mapping[str, str], name: str) -> str | None:
    """Return the path of the user's file *name* about a store, or None if there is no home."""
    state = environ.get("XDG_STATE_HOME", "")
    # The specification says that a relative path is to be ignored.
    if not os.path.isabs(state):
        home = _find_home(environ)
        if home is None:
            return None
        state = os.path.join(home, ".local", "state")
    key = hashlib.sha256(os.fsencode(os.path.realpath(git_dir))).hexdigest()
    return os.path.join(state, "uwf", "stores", key, name)


def _find_home(environ: Mapping[str, str]) -> str | None:
    home = environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    # Cron jobs and hooks may have no HOME. Imported only for them.
    with suppress(ImportError, KeyError):
        import pwd  # noqa: PLC0415 (see above; Windows has none)

        home = pwd.getpwuid(os.geteuid()).pw_dir
    return home if os.path.isabs(home) else None
