"""Mirrors: remotes by which plain git takes back or deletes what happened to threads.

After `git clone --mirror`, `git fetch` moves each ref here to its value there, also back over
steps, and `git push` deletes each ref there that is missing here. Source: git-config(1),
`remote.<name>.mirror`; git-fetch(1), "<refspec>".
"""

from uwf_git.errors import Refused, name_some
from uwf_git.store.git.config import GitConfig

_OURS = ("refs/threads/", "refs/archive/", "refs/workflows/", "refs/cas/")
_SECTION = "remote."


def refuse_mirror(config: GitConfig) -> None:
    """Raise `Refused` if a remote is a mirror."""
    names = list_mirrors(config)
    if names:
        a_mirror = "is a mirror" if len(names) == 1 else "are mirrors"
        raise Refused(
            f"remote {name_some(names)} {a_mirror}: `git fetch` would take back what is recorded "
            "here, and `git push` delete what is not here",
            code="mirror-store",
            hint="`uwf remote repair` makes it safe to use; until then only reading works",
            remotes=names,
        )


def list_mirrors(config: GitConfig) -> list[str]:
    names = {name.rpartition(".")[0] for name in config.values if name.startswith(_SECTION)}
    found = (each.removeprefix(_SECTION) for each in names if _is_mirror(config, each))
    return sorted(found)


def _is_mirror(config: GitConfig, section: str) -> bool:
    return config.get_flag(f"{section}.mirror", default=False) or any(
        moves_threads_back(refspec)
        for key in ("fetch", "push")
        for refspec in config.get_all(f"{section}.{key}")
    )


def moves_threads_back(refspec: str) -> bool:
    """Check whether *refspec* may move a shared ref other than forward."""
    source, _colon, target = refspec.removeprefix("+").partition(":")
    fixed, star, _rest = (target or source).partition("*")
    return refspec.startswith("+") and any(
        fixed.startswith(ours) or (star and ours.startswith(fixed)) for ours in _OURS
    )
