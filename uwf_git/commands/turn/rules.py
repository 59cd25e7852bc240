"""What the settings say of a turn: how often it is tried again, and what it keeps."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from uwf_git.engine.masking import MASK, find_secrets, is_secret_name, mask
from uwf_git.errors import Refused
from uwf_git.store.git.config import GitConfig, parse_size

if TYPE_CHECKING:
    from uwf_git.commands.turn.flow import FlowPlace

# Retry rules of an agent: its own settings, else git config, else none.
#
# Source: seed 004, "retries": the wait grows by one unit with each attempt.

RETRIES = "uwf.retries"
CLAIM = "uwf.claim"
"""Each run of a thread claims it at its hub, as `--claim` does."""

BACKOFF = "uwf.backoff"

DEFAULT_RETRIES = 0
DEFAULT_BACKOFF_S = 1.0

_LONGEST_WAIT_S = 3600.0
_MOST_DIGITS = 9


class RetryRules(NamedTuple):
    """How often and how soon a failed agent is tried again."""

    retries: int
    """The attempts after the first."""

    backoff_s: float
    """The wait before the first retry; the wait before retry n is n times as long."""

    def wait_s(self, failures: int) -> float:
        """Return how long to wait after that many failures."""
        return min(_LONGEST_WAIT_S, self.backoff_s * failures)


def read_retry(
    config: GitConfig, agent: Mapping[str, Any], place: "FlowPlace | None" = None
) -> RetryRules:
    retries = None if place is None else place.retries
    retries = agent.get("retries") if retries is None else retries
    backoff = agent.get("backoff")
    return RetryRules(
        int(_read(config, RETRIES, DEFAULT_RETRIES)) if retries is None else retries,
        _read(config, BACKOFF, DEFAULT_BACKOFF_S) if backoff is None else backoff,
    )


def find_work_retries(config: GitConfig, place: "FlowPlace") -> int:
    """Return how often work that was rejected at *place* is done again: as work that failed is."""
    bound = place.present.binding.get(place.node.agent)
    agent = {} if bound is None else place.snapshot.get_node(bound).payload
    return read_retry(config, agent, place).retries


def _read(config: GitConfig, name: str, default: float) -> float:
    text = config.get(name)
    if not text:
        return default
    plain = text if name == RETRIES else text.replace(".", "", 1)
    if not (plain.isascii() and plain.isdecimal() and len(plain) <= _MOST_DIGITS):
        kind = "a whole number" if name == RETRIES else "a number"
        raise Refused(
            f"{name} is {text[:40]!r}, not {kind}",
            code="bad-retry-setting",
            hint=f"set it anew: `uwf config set {name} 2`",
            setting=name,
        )
    return float(text)


# What a step keeps besides its result: the end of its agent's log, and named variables.
#
# A value that may be a secret is masked, and a variable with the name of a secret always is.
# Source: seed 000, AgentExecContext: an environment can be recorded for an audit, not by default.

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
    log_bytes: int = DEFAULT_LOG_BYTES
    """The most bytes of the agent's log; 0 keeps none."""

    env: tuple[str, ...] = ()
    """The names of the variables; ``*`` in one stands for anything."""


def read_keep_rules(config: GitConfig) -> KeepRules:
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
