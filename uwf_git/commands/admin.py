"""The store itself: made, set up, tidied; and the debug log."""

import difflib
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from uwf_git.agents.command_line import split_command
from uwf_git.commands.turn.flow import CLAIM, KEEP_LOGS, RECORD_ENV, read_keep_rules, read_retry
from uwf_git.commands.turn.next_move import CONFIG_NAME
from uwf_git.commands.worktree.chain import MAX_FILES, RECORD_FILES, read_most
from uwf_git.commands.worktree.record import list_parents
from uwf_git.commands.worktree.worktrees import sweep_worktrees
from uwf_git.debug_log import debug, switch_on
from uwf_git.engine.masking import find_secrets, mask, mask_keys
from uwf_git.errors import BadUsage, Refused, UwfError
from uwf_git.plan import settings as plan
from uwf_git.store import packing
from uwf_git.store.git.config import (
    NAME,
    GitConfig,
    add_config,
    find_program,
    normal_name,
    read_config_file,
    set_config,
    share_folder,
    shared_umask,
)
from uwf_git.store.git.hook_files import PINNED, check_hooks, install_hooks
from uwf_git.store.git.program import ProgramFailed, start_background_program
from uwf_git.store.locks import LockingUnsupported
from uwf_git.store.objects.incoming_pack import (
    MAX_BLOB_SIZE,
    MAX_FETCH_OBJECTS,
    MAX_FETCH_REFS,
    MAX_FETCH_SIZE,
)
from uwf_git.store.remotes.incoming import RECEIVE_TIMEOUT, read_fetch_limits, read_receive_limits
from uwf_git.store.store import (
    Store,
    check_owner,
    create_store,
    default_path,
    find_git_dir,
    is_unfinished,
    open_store,
    own_change,
)
from uwf_git.store.tidy import (
    claim_start,
    find_union,
    is_quick,
    pack_refs,
    pause_uniting,
    remove_stale_files,
    remove_stale_packs,
    unite_packs,
)
from uwf_git.store.trust import describe_command, trust_agents
from uwf_git.surroundings import folders_around

# Switch the debug log on as `UWF_DEBUG` says: 1 (standard error), 0, or a file to append to.

DEBUG_VARIABLE = "UWF_DEBUG"

_OFF = ("", "0")
_STDERR = "1"


def switch_on_debug_log(
    environ: Mapping[str, str], *, cwd: str, is_asked: bool = False
) -> dict[str, str]:
    """Switch the debug log on if asked for; return the environment for child processes."""
    value = environ.get(DEBUG_VARIABLE, "")
    if value in _OFF and not is_asked:
        return dict(environ)
    path = None if value in (*_OFF, _STDERR) else os.path.join(cwd, os.path.expanduser(value))
    secrets = find_secrets(environ)
    switch_on(path, mask=lambda text: mask_keys(mask(text, secrets)))
    debug("W8FET4CS", "debug log on", output=path or "stderr", cwd=cwd)
    return {**environ, DEBUG_VARIABLE: path or _STDERR}


# `uwf init`: make a git repository a store, or a bare repository to push to.
#
# An existing repository keeps all it has, and gets the setting ``uwf.store = true``, by which uwf
# finds it from the folders below.


class Initialized(NamedTuple):
    store: Store
    created: bool

    is_adopted: bool = False


def init_store(path: str | None, cwd: str, environ: Mapping[str, str]) -> Initialized:
    """Make the repository at *path* a store; create it if it does not exist.

    Without a path: the default store of the user. A *path* that leads to *cwd* or above, such as
    ``.``, stands for the repository around it, if there is any.
    """
    target = os.path.join(cwd, os.path.expanduser(path)) if path else default_path(environ)
    git_dir = find_git_dir(target)
    if git_dir is None and path:
        git_dir = _find_above(os.path.realpath(target), os.path.realpath(cwd), environ)
    if git_dir is None:
        if not is_unfinished(target):
            raise Refused(
                f"{target} is not empty, and is no git repository",
                code="not-empty",
                hint="name a new folder: `uwf init store.git`; or make this one a repository "
                "first: `git init`",
                path=target,
            )
        store = create_store(target, environ=environ)
    else:
        store = open_store(git_dir, environ=environ)
    is_new = not store.config.get_flag("uwf.store", default=False)
    if is_new:
        with shared_umask(store.config, own_file=store.trust_file), own_change(store):
            set_config(os.path.join(store.path, "config"), "uwf.store", "true")
    return Initialized(store, created=git_dir is None, is_adopted=git_dir is not None and is_new)


def _find_above(target: str, cwd: str, environ: Mapping[str, str]) -> str | None:
    """Return the repository whose work tree holds *target*, if *cwd* is *target* or below it."""
    if os.path.commonpath([target, cwd]) != target:
        return None
    for folder in islice(folders_around(target), 1, None):
        # A bare repository has no work tree: it encloses nothing.
        if os.path.lexists(os.path.join(folder, ".git")):
            git_dir = find_git_dir(folder)
            if git_dir is not None:
                check_owner(folder, git_dir, environ)
                return git_dir
    return None


# `uwf init --shared`: a bare repository to push to, with group rights, hooks and settings.
#
# Nothing changes before the hooks are known to be installable; existing settings stay.

_HIDE = "transfer.hideRefs"
# Refs of one store alone; and, hidden in a new store, refs by which git shows another commit.
_LOCAL_REFS, _REPLACEMENTS = "refs/uwf", "refs/replace"

_AS_A_GROUP = GitConfig({NAME.lower(): ["group"]})
_SETTINGS = {NAME: "group", **PINNED}
# `git init --shared` sets it too; the branches of an existing repository are not ours to restrict.
_NEW_SETTINGS = {"receive.denyNonFastForwards": "true"}


class Shared(NamedTuple):
    store: Store
    created: bool

    hooks: list[str]


def init_shared(path: str | None, cwd: str, environ: Mapping[str, str], *, python: str) -> Shared:
    """Make a bare repository at *path* for a group to push to; its hooks run uwf with *python*."""
    target = os.path.join(cwd, os.path.expanduser(path)) if path else default_path(environ)
    _check_hooks(target, environ)
    with shared_umask(_AS_A_GROUP):
        # From the root, so that a project around *cwd* is never meant.
        made = init_store(target, os.sep, environ)
        hooks = install_hooks(made.store.path, python=python)
        config_path = os.path.join(made.store.path, "config")
        with own_change(made.store):
            _configure(config_path, _SETTINGS)
            _hide(config_path, _LOCAL_REFS)
            if made.created:
                _configure(config_path, _NEW_SETTINGS)
                _hide(config_path, _REPLACEMENTS)
        share_folder(made.store.path)
    return Shared(open_store(made.store.path, environ=environ), made.created, hooks)


def _check_hooks(target: str, environ: Mapping[str, str]) -> None:
    git_dir = find_git_dir(target)
    if git_dir is None:
        check_hooks(target, GitConfig({}))
        return
    store = open_store(git_dir, environ=environ)
    # git guesses the same where the config does not say.
    if not store.config.get_flag("core.bare", default=os.path.basename(git_dir) != ".git"):
        raise Refused(
            f"{store.path} has a work tree; a store that several people push to must be bare",
            code="not-bare",
            hint="name another place: `uwf init --shared PATH.git`",
            path=store.path,
        )
    check_hooks(store.path, read_config_file(os.path.join(store.path, "config")))


def _configure(config_path: str, settings: Mapping[str, str]) -> None:
    own = read_config_file(config_path)
    for name, value in settings.items():
        if own.get(name) is None:
            set_config(config_path, name, value)


def _hide(config_path: str, refs: str) -> None:
    if refs not in read_config_file(config_path).get_all(_HIDE):
        add_config(config_path, _HIDE, refs)


# `uwf config`: the `uwf.*` settings in git config; a command that is set here is trusted.

CHAT_ANSWERS = "uwf.chatAnswers"

SETTINGS: dict[str, str] = {
    "uwf.agent": "the agent command of roles that have none",
    "uwf.store": "whether uwf finds this repository as a store from the folders below it",
    "uwf.format": "the format of results at a terminal (text unless set; json, yaml)",
    "uwf.fsync": "whether commits are flushed to the disk (true unless set)",
    "uwf.retries": "how often a failed agent is tried again (0 unless set)",
    "uwf.backoff": "seconds before the first retry; each later retry waits longer (1 unless set)",
    KEEP_LOGS: "how much of the log of a step that went well is kept (64k unless set, 0 is none)",
    RECORD_ENV: "the variables of an agent's environment that its step keeps, masked: LANG NODE_*",
    CLAIM: "whether each run of a thread claims it at the remote, as `--claim` (false unless set)",
    RECORD_FILES: "whether the files of the project are recorded before and after each turn (true "
    "unless set)",
    MAX_FILES: "the most bytes of files that are recorded for a thread (1g unless set)",
    "uwf.maxBlobSize": "the largest blob that a push or a fetch may bring (32m unless set, 0 is no "
    "limit)",
    "uwf.maxFetchSize": "the most bytes that a fetch may bring (unless set 4g packed, and unpacked "
    "256 times the pack, at least 1g; 0 is no limit)",
    "uwf.maxFetchObjects": "the most objects that a fetch may bring (1000000 unless set, 0 is no "
    "limit)",
    "uwf.maxFetchRefs": "the most refs, new or moved, that a fetch may bring (100000 unless set, "
    "0 is no limit)",
    "uwf.signTimeout": "seconds that signing or checking a commit may take (120 unless set)",
    "uwf.receiveTimeout": "seconds that the check of a push or a fetch may take (600 unless set, 0 "
    "is a day)",
    "uwf.onReceive": "the command that a shared store runs for each pushed transition",
    "uwf.onEvent": "the command that is run for each event that is recorded in this store",
    CHAT_ANSWERS: "whether a chat program may ask its user what a thread asks (true unless set)",
    **plan.MEANINGS,
}

_COMMANDS = {CONFIG_NAME, "uwf.onReceive", "uwf.onEvent", *plan.COMMANDS}
_IN_A_DIRECTORY = {CONFIG_NAME, *plan.TRUSTED}
_TRUSTED = {"uwf.onEvent", *_IN_A_DIRECTORY}
_FLAGS = {"uwf.store", "uwf.fsync", CLAIM, RECORD_FILES, CHAT_ANSWERS}
_RECEIVED = {MAX_BLOB_SIZE, MAX_FETCH_SIZE, MAX_FETCH_OBJECTS, MAX_FETCH_REFS, RECEIVE_TIMEOUT}
_SELDOM = {"uwf.fsync", MAX_FILES, "uwf.signTimeout", *_RECEIVED, *plan.SELDOM}
_FLAG_VALUES = {"true", "false", "yes", "no", "on", "off", "1", "0"}
_FORMATS = ("json", "yaml", "text")
_READERS: tuple[Callable[[GitConfig], object], ...] = (
    read_receive_limits, read_fetch_limits, read_keep_rules, read_most, plan.read_plan_settings,
    lambda config: read_retry(config, {}),
)  # fmt: skip
"""Each reads some settings, and refuses a value that cannot be read."""


def _bad_value(name: str, value: str, *, choices: str = "true or false") -> BadUsage:
    return BadUsage(
        f"{name} cannot be {value[:60]!r}", code="bad-value", hint=f"it is {choices}", setting=name
    )


class Setting(NamedTuple):
    name: str
    value: str | None
    meaning: str


def get_store_setting(store: Store, name: str) -> Setting:
    """Return the setting *name* (with or without ``uwf.``)."""
    name = full_name(name)
    value = store.config.get(name)
    if value is None:
        raise Refused(
            f"{name} is not set",
            code="not-set",
            hint=f"set it with `uwf config set {name} VALUE`",
            setting=name,
        )
    return Setting(name, value, SETTINGS[name])


def set_setting(store: Store, name: str, value: str, *, cwd: str | None = None) -> Setting:
    """Set *name* in the store's own config; a command is trusted from now on, an agent in *cwd*."""
    full = full_name(name)
    if full in _FLAGS and value.lower() not in _FLAG_VALUES:
        raise _bad_value(full, value)
    if full == "uwf.format" and value not in _FORMATS:
        raise _bad_value(full, value, choices="json, yaml or text")
    config = GitConfig({full.lower(): [value]})
    for read in _READERS:
        read(config)
    if full == "uwf.signTimeout":
        from uwf_git.store.signatures import read_sign_timeout  # noqa: PLC0415 (15 ms to import, for one number)

        read_sign_timeout(store._replace(config=config))
    if full in _COMMANDS and value:
        # Checked here, before a step would run it. An empty value removes the default.
        split_command(value)
    with own_change(store):
        set_config(os.path.join(store.path, "config"), full, value)
    if full in _TRUSTED and value:
        where = cwd if full in _IN_A_DIRECTORY else store.path
        trust_agents(store, [describe_command(full, value)], where)
    return Setting(full, value, SETTINGS[full])


def list_settings(store: Store, *, with_seldom: bool = True) -> list[Setting]:
    """List the settings, with their values or None; *with_seldom* also unset rare settings."""
    found = [Setting(name, store.config.get(name), told) for name, told in SETTINGS.items()]
    return [each for each in found if with_seldom or each.value or each.name not in _SELDOM]


def full_name(name: str) -> str:
    normal = normal_name(_with_prefix(name))
    for full in SETTINGS:
        if normal_name(full) == normal:
            return full
    short = [each.removeprefix("uwf.") for each in SETTINGS]
    near = difflib.get_close_matches(name.removeprefix("uwf."), short)
    meant = f"did you mean {' or '.join(map(_with_prefix, near))}? " if near else ""
    raise BadUsage(
        f"there is no setting {name[:60]}",
        code="no-such-setting",
        hint=f"{meant}`uwf config list --all` shows every setting",
        setting=name[:60],
    )


def _with_prefix(name: str) -> str:
    return name if name.lower().startswith("uwf.") else f"uwf.{name}"


# `uwf gc`, and the same by itself when it is due: remove stale files, pack refs, pack objects.
#
# And unite the small packs of steps, which is due some hundred times as often. It is safe while
# other commands run; what it cannot do now, the next run does.


class Collected(NamedTuple):
    before: packing.Counted
    after: packing.Counted
    swept: int
    """How many leftovers of killed processes were removed."""

    last_failure: str | None
    """Why packing in the background had failed; returned once."""


def gc_store(store: Store, environ: Mapping[str, str]) -> Collected:
    """Pack objects and refs of *store*, and remove what killed processes left."""
    with shared_umask(store.config), packing.hold_gc_lock(store), pause_uniting(store):
        last_failure = packing.take_gc_log(store)
        before = packing.count_files(store)
        swept = _remove_stale(store, environ)
        pack_refs(store)
        packing.pack_objects(store, environ)
        return Collected(before, packing.count_files(store), swept, last_failure)


def is_gc_due(store: Store) -> bool:
    """Check whether *store* is due for packing, at the price of three directory listings."""
    return (
        bool(packing.find_due(store))
        and not packing.has_failed_lately(store)
        and not packing.is_gc_running(store)
    )


def gc_if_due(store: Store, environ: Mapping[str, str]) -> bool:
    """Pack or unite what is due, and return whether anything was; a concurrent gc is no error."""
    due = packing.find_due(store)
    if not due:
        return unite_packs(store) > 0
    try:
        with shared_umask(store.config), packing.hold_gc_lock(store), pause_uniting(store):
            _remove_stale(store, environ)
            pack_refs(store)
            if due.objects:
                packing.pack_objects(store, environ, auto=True)
                # Logged as a failure, so that packing is not repeated after each step.
                if packing.find_due(store).objects:
                    why = "there are still many objects that no ref needs, too young to be deleted "
                    packing.write_gc_log(store, f"{why}(gc.pruneExpire)")
    except packing.GcRuns:
        return False
    return True


def gc_unwatched(store: Store, environ: Mapping[str, str]) -> bool:
    """Pack as ``gc_if_due``, in a process whose errors nobody sees.

    A failure is logged for the next `uwf gc`, and packing, but not uniting, is not tried again for
    a day.
    """
    try:
        if packing.has_failed_lately(store):
            return unite_packs(store) > 0
        return gc_if_due(store, environ)
    except (UwfError, OSError) as error:
        packing.write_gc_log(store, str(error))
        return False


def tidy(store: Store, environ: Mapping[str, str]) -> str | None:
    """Pack and unite what is due, in the background if it takes long; return what prevents it."""
    union, is_due = find_union(store), is_gc_due(store)
    needs_git = is_due and packing.find_due(store).objects
    told = packing.NO_GIT if needs_git and find_program("git", environ) is None else None
    if not packing.is_detached(store.config):
        if is_due or union:
            gc_unwatched(store, environ)
        return told
    # Where there are no locks, no step comes so far.
    with suppress(LockingUnsupported):
        if is_due or not is_quick(union):
            if claim_start(store):
                argv = [sys.executable, "-P", "-m", "uwf_git", "gc", "--auto", "--detached"]
                argv += ["--format=json", "--repo", store.path]
                try:
                    start_background_program(argv, environ)
                except ProgramFailed as error:
                    packing.write_gc_log(store, str(error))
        elif union:
            unite_packs(store)
    return told


def _remove_stale(store: Store, environ: Mapping[str, str]) -> int:
    removed = sweep_worktrees(store, environ) if any(True for _ in list_parents(store)) else 0
    return removed + remove_stale_files(store) + remove_stale_packs(store)
