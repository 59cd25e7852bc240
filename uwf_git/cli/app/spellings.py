"""Words that people type for a command of another name: of other tools, and of older programs."""

import re
from collections.abc import Mapping, Sequence

_UNSET = ("git --git-dir=STORE config --unset uwf.NAME",)
_STOP = ("uwf thread pause --now", "uwf thread kill")

_MEANT: Mapping[str, Mapping[str, Sequence[str]]] = {
    "uwf": {
        "add": ("uwf workflow put",),
        "cancel": ("uwf thread kill",),
        "exec": ("uwf thread step",),
        "list": ("uwf thread list", "uwf workflow list"),
        "ls": ("uwf thread list", "uwf workflow list"),
        "remove": ("uwf workflow remove", "uwf thread rm"),
        "show": ("uwf thread show", "uwf workflow show"),
        "status": ("uwf thread show", "uwf ps"),
        "stop": _STOP,
        "threads": ("uwf thread list",),
        "workflows": ("uwf workflow list",),
    },
    "uwf thread": {
        "cancel": ("uwf thread kill",),
        "exec": ("uwf thread step",),
        "ls": ("uwf thread list",),
        "remove": ("uwf thread rm",),
        "status": ("uwf thread show",),
        "stop": _STOP,
    },
    "uwf workflow": {
        "add": ("uwf workflow put",),
        "ls": ("uwf workflow list",),
        "rm": ("uwf workflow remove",),
    },
    "uwf config": {"ls": ("uwf config list",), **dict.fromkeys(("remove", "rm", "unset"), _UNSET)},
}

# Ids of threads are ULIDs, and begin with the time: with 0 for centuries. One may be shortened.
_THREAD_ID = re.compile(r"0[0-9A-HJKMNP-TV-Z]{1,25}", re.IGNORECASE)


def find_meant(group: str, given: str) -> Sequence[str]:
    """Return the whole commands that *given* may mean in *group*, such as ``uwf thread``."""
    if group == "uwf thread" and _THREAD_ID.fullmatch(given):
        return (f"uwf thread show {given}",)
    return _MEANT.get(group, {}).get(given.lower(), ())
