"""git's own gc, as we run it.

Owns: what `git gc` is told.
Knows nothing of: when it is run. Always true: it touches objects only, never refs, reflogs,
work trees or an index: what git locks there by name it would, when killed, keep locked.
Source: git-gc(1), git-config(1) ``gc.*``; git's builtin/gc.c and builtin/repack.c.
"""

import os
import re
from collections.abc import Mapping

from uwf_git.store.gc_lock import GcRuns
from uwf_git.store.packing_policy import find_expiry, read_limits
from uwf_git.store.program import ProgramFailed, run_program
from uwf_git.store.store import Store

# What would make git look at another repository than the one it is told (`git rev-parse
# --local-env-vars`); we may be called from a hook, where they are set.
_OF_ANOTHER = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)

_SETTINGS = {
    # pack_refs.py does it, and a kill leaves no packed-refs.lock.
    "gc.packRefs": "false",
    # Reflogs, work trees and recorded merges are a project's own, and are locked by name.
    "gc.reflogExpire": "never",
    "gc.reflogExpireUnreachable": "never",
    "gc.worktreePruneExpire": "never",
    "rerere.enabled": "false",
    # Nothing of ours reads it, and a killed git leaves its lock, which stops every later gc.
    "gc.writeCommitGraph": "false",
    # For clones over HTTP without git on the server: it would list every ref, and be old soon.
    "repack.updateServerInfo": "false",
    "gc.autoDetach": "false",
}

# Faster clones of large stores, for which a step of 1 KB takes 3 % more; asked for, it is made.
_BITMAPS = "repack.writeBitmaps"

_GRAPHS = ("commit-graph", "commit-graphs")

_RUNS = re.compile(rb"gc is already running on machine '([^']*)' pid ([0-9]+)")


def run_git_gc(store: Store, git: str, environ: Mapping[str, str], *, auto: bool) -> None:
    """Let the program *git* pack the objects of *store*; with *auto* only if it is due.

    Raises:
        GcRuns: another gc of git's is at work.
        ProgramFailed: it could not, and says why.
    """
    settings = dict(_SETTINGS)
    if store.config.get_flag("uwf.fsync", default=True):
        # Objects that are unpacked again as well, which git does not force to the disk.
        settings["core.fsync"] = "all"
    if store.config.get(_BITMAPS) is None:
        settings[_BITMAPS] = "false"
    limits = read_limits(store.config)
    settings["gc.auto"] = str(limits.loose)
    settings["gc.autoPackLimit"] = str(limits.packs)
    told = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    argv = [git, f"--git-dir={store.path}", *told, "gc", "--quiet", _expiry(store)]
    clean = {name: value for name, value in environ.items() if name not in _OF_ANOTHER}
    ran = run_program(
        [*argv, *(["--auto"] if auto else [])], clean | {"LC_ALL": "C"}, cwd=store.path
    )
    if match := _RUNS.search(ran.stderr):
        raise GcRuns({"pid": int(match[2]), "host": match[1].decode(errors="replace")})
    if ran.status != 0:
        raise ProgramFailed(
            "git gc",
            f"failed: {ran.last_line or f'exit status {ran.status}'}",
            hint=f"`uwf verify` says what is damaged, if anything is; `git -C {store.path} gc` "
            "shows all that git says",
        )


def _expiry(store: Store) -> str:
    expiry = find_expiry(store.config)
    # A graph of commits that has one which was pruned is damage to `git fsck`, and we do not
    # write graphs: where there is one, pruning is left to whoever wrote it.
    graphs = (os.path.join(store.path, "objects", "info", name) for name in _GRAPHS)
    if expiry is None or any(map(os.path.exists, graphs)):
        return "--no-prune"
    return f"--prune=@{expiry}"
