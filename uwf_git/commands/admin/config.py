"""`uwf config`: the `uwf.*` settings in git config; a command that is set here is trusted."""

import difflib
import os
from collections.abc import Callable
from typing import NamedTuple

from uwf_git.agents.command_line import split_command
from uwf_git.commands.turn.next_move import CONFIG_NAME
from uwf_git.commands.turn.rules import (
    CLAIM,
    KEEP_LOGS,
    RECORD_ENV,
    read_keep_rules,
    read_retry,
)
from uwf_git.commands.worktree.chain import MAX_FILES, RECORD_FILES, read_most
from uwf_git.errors import BadUsage, Refused
from uwf_git.plan import settings as plan
from uwf_git.store.git.config import GitConfig, normal_name, set_config
from uwf_git.store.objects.incoming_pack import (
    MAX_BLOB_SIZE,
    MAX_FETCH_OBJECTS,
    MAX_FETCH_REFS,
    MAX_FETCH_SIZE,
)
from uwf_git.store.remotes.incoming import RECEIVE_TIMEOUT, read_fetch_limits, read_receive_limits
from uwf_git.store.store import Store, own_change
from uwf_git.store.trust import describe_command, trust_agents

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
    if full in _TRUSTED and value:
        where = cwd if full in _IN_A_DIRECTORY else store.path
        trust_agents(store, [describe_command(full, value)], where)
    with own_change(store):
        set_config(os.path.join(store.path, "config"), full, value)
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
