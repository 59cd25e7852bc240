"""What a step keeps besides its result: the end of its agent's log, and named variables.

A value that may be a secret is masked, and a variable whose name is that of a secret always is.
Source: seed 000, AgentExecContext: an environment can be recorded for an audit, not by default.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from uwf_git.engine.masking import MASK, find_secrets, is_secret_name, mask
from uwf_git.errors import Refused
from uwf_git.store.git.config import GitConfig, parse_size

if TYPE_CHECKING:
    pass


KEEP_LOGS = "uwf.keepLogs"
RECORD_ENV = "uwf.recordEnv"

DEFAULT_LOG_BYTES = 64 * 1024


def _bad_keep_setting(name: str, value: str) -> Refused:
    return Refused(
        f"{name} is {value[:40]!r}, not a size such as 64k",
        code="bad-keep-setting",
        hint=f"set it anew: `uwf config set {name} 64k`; 0 keeps no logs",
        setting=name,
    )


class KeepRules(NamedTuple):
    """What a step keeps."""

    log_bytes: int = DEFAULT_LOG_BYTES
    """The most bytes of the agent's log; 0 keeps none."""

    env: tuple[str, ...] = ()
    """The names of the variables; ``*`` in one stands for anything."""


def read_keep_rules(config: GitConfig) -> KeepRules:
    """Return the rules in git config.

    Raises:
        Refused: a setting has a wrong value.
    """
    text = config.get(KEEP_LOGS)
    size = parse_size(text) if text else DEFAULT_LOG_BYTES
    if size is None:
        raise _bad_keep_setting(KEEP_LOGS, text or "")
    names = (config.get(RECORD_ENV) or "").replace(",", " ").split()
    return KeepRules(size, tuple(names))


def record_env(environment: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Return the variables of *environment* that *names* name, with secrets masked."""
    secrets = find_secrets(environment)
    return {
        name: MASK if value and is_secret_name(name) else mask(value, secrets)
        for name, value in sorted(environment.items())
        if any(fnmatchcase(name, pattern) for pattern in names)
    }
