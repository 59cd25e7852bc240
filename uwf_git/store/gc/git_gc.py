"""Run `git gc` on a store, limited to objects.

Refs, reflogs, work trees and the index are left out: git locks them by name, and a killed git would
leave the lock.
Source: git-gc(1), git-config(1) ``gc.*``; git's builtin/gc.c and builtin/repack.c.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress

from uwf_git.git_environment import without_local_variables
from uwf_git.store.gc.lock import GcRuns
from uwf_git.store.gc.policy import find_due, find_expiry
from uwf_git.store.gc.small_packs import list_own_packs
from uwf_git.store.git.program import ProgramFailed, run_program
from uwf_git.store.objects.pack_file import PACK
from uwf_git.store.store import Store
from uwf_git.store.trust import require_trusted

_SETTINGS = {
    # pack_refs.py packs refs, and when killed leaves no packed-refs.lock.
    "gc.packRefs": "false",
    # Reflogs, work trees and recorded merges belong to a project, and are locked by name.
    "gc.reflogExpire": "never",
    "gc.reflogExpireUnreachable": "never",
    "gc.worktreePruneExpire": "never",
    "rerere.enabled": "false",
    # uwf does not read it, and a killed git leaves its lock, which stops every later gc.
    "gc.writeCommitGraph": "false",
    # Only for clones over HTTP without git on the server; it lists every ref, and is soon stale.
    "repack.updateServerInfo": "false",
    "gc.autoDetach": "false",
    # Programs that the store's own files and config name: a store may come from anywhere.
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
}
_NO_FETCHES = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
_RECENT = "gc.recentObjectsHook"

_BIG_PACK = "gc.bigPackThreshold"
_LARGE_BYTES = 8 * 1024 * 1024
_PACKS = os.path.join("objects", "pack")

_CHOSEN = {
    # `--aggressive` compares each with 250 others by default, which takes ten times as long, and
    # saves nothing here.
    "gc.aggressiveWindow": "10",
    "gc.aggressiveDepth": "50",
    # What has its deltas already is not compared again for each some hundred steps.
    _BIG_PACK: "",
    # Faster clones of large stores, but a step of 1 KB takes 3 % more space.
    "repack.writeBitmaps": "false",
}
"""Settings that those of the user and the store win over."""

_GRAPHS = ("commit-graph", "commit-graphs")

_RUNS = re.compile(rb"gc is already running on machine '([^']*)' pid ([0-9]+)")


def run_git_gc(store: Store, git: str, environ: Mapping[str, str], *, auto: bool) -> None:
    """Pack the objects of *store* with the program *git*; with *auto* leave large packs alone.

    Raises:
        GcRuns: another gc of git is at work.
        ProgramFailed: it failed.
        Refused: the store's own config names a program that gc would run.
    """
    require_trusted(store, _RECENT, store.path)
    chosen = {name: value for name, value in _CHOSEN.items() if store.config.get(name) is None}
    has_large = False
    if _BIG_PACK in chosen:
        large_bytes = _find_large_bytes(store)
        chosen[_BIG_PACK] = str(large_bytes)
        has_large = _has_large_packs(store, large_bytes)
    # git compares no objects that it finds whole in one pack, unless told to; of steps all are.
    _run(store, git, environ, chosen, "--aggressive")
    if has_large and (not auto or find_due(store).objects):
        # All into one pack. What is in different packs git compares in any case.
        del chosen[_BIG_PACK]
        _run(store, git, environ, chosen)


def _run(
    store: Store, git: str, environ: Mapping[str, str], chosen: Mapping[str, str], *options: str
) -> None:
    settings = {**_SETTINGS, **chosen}
    if store.config.get_flag("uwf.fsync", default=True):
        # Includes objects that gc unpacks, which git does not sync by default.
        settings["core.fsync"] = "all"
    overrides = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    argv = [git, f"--git-dir={store.path}", *overrides, "gc", "--quiet", _expiry(store), *options]
    # A hook, which may call this, has variables set that would make git use another repository.
    clean = without_local_variables(environ) | _NO_FETCHES | {"LC_ALL": "C"}
    ran = run_program(argv, clean, cwd=store.path)
    if match := _RUNS.search(ran.stderr):
        raise GcRuns({"pid": int(match[2]), "host": match[1].decode(errors="replace")})
    if ran.status != 0:
        raise ProgramFailed(
            "git gc",
            f"failed: {ran.last_line or f'exit status {ran.status}'}",
            hint=f"`uwf verify` says what is damaged, if anything is; `git -C {store.path} gc` "
            "shows all that git says",
        )


def _find_large_bytes(store: Store) -> int:
    """Return from which size a pack is left alone: packs of steps never are."""
    own = list_own_packs(os.path.join(store.path, _PACKS))
    return max([_LARGE_BYTES, *(pack.size_bytes + 1 for pack in own)])


def _has_large_packs(store: Store, large_bytes: int) -> bool:
    folder = os.path.join(store.path, _PACKS)
    packs = (os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(PACK))
    # One may be united in this moment.
    with suppress(FileNotFoundError):
        return any(os.stat(path).st_size >= large_bytes for path in packs)
    return False


def _expiry(store: Store) -> str:
    expiry = find_expiry(store.config)
    # `git fsck` reports a commit-graph that names a pruned commit. uwf writes no graphs: where
    # there is one, pruning is left to the git that wrote it.
    graphs = (os.path.join(store.path, "objects", "info", name) for name in _GRAPHS)
    if expiry is None or any(map(os.path.exists, graphs)):
        return "--no-prune"
    return f"--prune=@{expiry}"
