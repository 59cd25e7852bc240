"""Note the settings of a store that something else than uwf has changed."""

import shlex

from uwf_git.commands.verify.finding import Finding
from uwf_git.store.config_watch import accept_config
from uwf_git.store.store import Store


def note_changed_settings(store: Store) -> tuple[Finding, ...]:
    """Return a note on each setting that changed since an agent was started; it is known then."""
    see = f"see what it is: `git -C {shlex.quote(store.path)} config --get-all"
    return tuple(
        Finding(
            f"the store's setting {name} was changed since an agent was started, not by uwf",
            f"{see} {shlex.quote(name)}`; it is known from now on",
        )
        for name in accept_config(store)
    )
