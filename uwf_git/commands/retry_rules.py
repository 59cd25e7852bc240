"""Retry rules: how often an agent that failed is tried again, and how soon.

Owns: the order the agent's own setting, git config, none. Knows nothing of: what is a failure
(model/thread.py). Source: seed 004, "retries", whose wait grows by one unit with each try.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.git_config import GitConfig

RETRIES = "uwf.retries"
BACKOFF = "uwf.backoff"

DEFAULT_RETRIES = 0
DEFAULT_BACKOFF_S = 1.0

_LONGEST_WAIT_S = 3600.0
_MOST_DIGITS = 9


class BadRetrySetting(Refused):
    """The setting is no number, or half a retry."""

    code = "bad-retry-setting"

    def __init__(self, name: str, value: str) -> None:
        kind = "a whole number" if name == RETRIES else "a number"
        super().__init__(
            f"{name} is {value[:40]!r}, not {kind}",
            hint=f"set it anew: `uwf config set {name} 2`",
            setting=name,
        )


class RetryRules(NamedTuple):
    """What is done when an agent fails."""

    retries: int
    """How many tries there are after the first."""

    backoff_s: float
    """How long to wait before the first of them; each later one waits as much longer."""

    def wait_s(self, failures: int) -> float:
        """Give how long to wait after so many failures."""
        return min(_LONGEST_WAIT_S, self.backoff_s * failures)


def read_retry(config: GitConfig, agent: Mapping[str, Any]) -> RetryRules:
    """Give the rules for the agent with this AgentConfig payload.

    Raises:
        BadRetrySetting: what git config says is no number.
    """
    retries = agent.get("retries")
    backoff = agent.get("backoff")
    return RetryRules(
        int(_read(config, RETRIES, DEFAULT_RETRIES)) if retries is None else retries,
        _read(config, BACKOFF, DEFAULT_BACKOFF_S) if backoff is None else backoff,
    )


def _read(config: GitConfig, name: str, default: float) -> float:
    text = config.get(name)
    if not text:
        return default
    plain = text.replace(".", "", 1)
    if name == RETRIES:
        plain = text
    if not (plain.isascii() and plain.isdecimal() and len(plain) <= _MOST_DIGITS):
        raise BadRetrySetting(name, text)
    return float(text)
