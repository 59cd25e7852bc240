"""`uwf config`: the settings of a store, a thin front to git config.

Owns: which settings there are, and what they mean. Always true: a name that means nothing is
refused, and what decides what may run here (trust) is shown but not set like a plain setting.
"""

import difflib
import os
from typing import NamedTuple

from uwf_git.agents.command_line import split_command
from uwf_git.commands.choose_agent import CONFIG_NAME
from uwf_git.commands.receive_limits import MAX_BLOB_SIZE, RECEIVE_TIMEOUT, read_limits
from uwf_git.commands.retry_rules import BACKOFF, RETRIES, read_retry
from uwf_git.errors import BadUsage, Refused
from uwf_git.store.git_config import GitConfig, normal_name, set_config
from uwf_git.store.store import Store

SETTINGS: dict[str, str] = {
    "uwf.agent": "the agent command of roles for which nobody named one",
    "uwf.store": "whether this repository is found as a store from the folders below it",
    "uwf.fsync": "whether commits are forced to the disk (true unless set)",
    "uwf.maxRunning": "how many agents run at once on this machine (0 or unset is no limit)",
    "uwf.retries": "how often an agent that failed is tried again (0 unless set)",
    "uwf.backoff": "seconds before the first of these tries, each later one as much longer (1)",
    "uwf.maxBlobSize": "the largest blob that a shared store takes (32m unless set, 0 is no limit)",
    "uwf.receiveTimeout": "seconds that the check of a push may take (600 unless set)",
    "uwf.onReceive": "the command that a shared store tells of every transition",
    "uwf.onEvent": "the command that is told of every event of a thread that is made here",
}

_COMMANDS = {CONFIG_NAME, "uwf.onReceive", "uwf.onEvent"}
_FLAGS = {"uwf.store", "uwf.fsync"}
_NUMBERS = {"uwf.maxRunning", RETRIES, BACKOFF, MAX_BLOB_SIZE, RECEIVE_TIMEOUT}
_FLAG_VALUES = {"true", "false", "yes", "no", "on", "off", "1", "0"}


class NoSuchSetting(BadUsage):
    """No setting has this name."""

    code = "no-such-setting"

    def __init__(self, name: str) -> None:
        near = difflib.get_close_matches(_with_front(name), SETTINGS, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        super().__init__(
            f"there is no setting {name[:60]}",
            hint=f"{meant}the settings are {', '.join(SETTINGS)}",
            setting=name[:60],
        )


class NotSet(Refused):
    """The setting has no value."""

    code = "not-set"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} is not set", hint=f"set it with `uwf config set {name} VALUE`", setting=name
        )


class BadValue(BadUsage):
    """The setting cannot have this value."""

    code = "bad-value"

    def __init__(self, name: str, value: str) -> None:
        super().__init__(
            f"{name} cannot be {value[:60]!r}", hint="it is true or false", setting=name
        )


class Setting(NamedTuple):
    """One setting as it counts now."""

    name: str
    value: str | None
    meaning: str


def get_setting(store: Store, name: str) -> Setting:
    """Give the setting *name* (with or without ``uwf.``).

    Raises:
        NoSuchSetting: there is none of that name.
        NotSet: it has no value.
    """
    full = full_name(name)
    value = store.config.get(full)
    if value is None:
        raise NotSet(full)
    return Setting(full, value, SETTINGS[full])


def set_setting(store: Store, name: str, value: str) -> Setting:
    """Set *name* in the store's own config; `git config --global` sets it for all stores.

    Raises:
        NoSuchSetting, BadValue, BadLimit, BadMaxRunning, BadRetrySetting, BadCommand: it cannot
            be set so.
        RefLocked: git is writing the config and does not let go.
    """
    full = full_name(name)
    if full in _FLAGS and value.lower() not in _FLAG_VALUES:
        raise BadValue(full, value)
    if full in _NUMBERS:
        _check_number(full, GitConfig({full.lower(): [value]}))
    if full in _COMMANDS and value:
        # Here, and not at the step that would run it. An empty one takes the default away.
        split_command(value)
    set_config(os.path.join(store.path, "config"), full, value)
    return Setting(full, value, SETTINGS[full])


def _check_number(name: str, config: GitConfig) -> None:
    """Read a setting as those do who need it, so that they never find one that means nothing."""
    if name in {MAX_BLOB_SIZE, RECEIVE_TIMEOUT}:
        read_limits(config)
    elif name in {RETRIES, BACKOFF}:
        read_retry(config, {})
    else:
        from uwf_git.commands.running_slots import (  # noqa: PLC0415 (costs 20 ms, for one number)
            read_max_running,
        )

        read_max_running(config)


def list_settings(store: Store) -> list[Setting]:
    """Give every setting there is, with its value or None."""
    return [Setting(name, store.config.get(name), meaning) for name, meaning in SETTINGS.items()]


def full_name(name: str) -> str:
    """Give the full name of a setting.

    Raises:
        NoSuchSetting: there is none of that name.
    """
    normal = normal_name(_with_front(name))
    for full in SETTINGS:
        if normal_name(full) == normal:
            return full
    raise NoSuchSetting(name)


def _with_front(name: str) -> str:
    return name if name.lower().startswith("uwf.") else f"uwf.{name}"
