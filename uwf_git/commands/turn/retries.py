"""Retry rules of an agent: its own settings, else git config, else none.

Source: seed 004, "retries": the wait grows by one unit with each attempt.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.git.config import GitConfig

if TYPE_CHECKING:
    from uwf_git.commands.turn.flow import FlowPlace


RETRIES = "uwf.retries"
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
    """Return the rules for the agent with this AgentConfig payload, at a *place* of a flow.

    Raises:
        Refused: a setting of git config is not a number.
    """
    retries = None if place is None else place.retries
    retries = agent.get("retries") if retries is None else retries
    backoff = agent.get("backoff")
    return RetryRules(
        int(_read(config, RETRIES, DEFAULT_RETRIES)) if retries is None else retries,
        _read(config, BACKOFF, DEFAULT_BACKOFF_S) if backoff is None else backoff,
    )


def find_work_retries(config: GitConfig, place: "FlowPlace") -> int:
    """Return how often work that was rejected at *place* is done again: as work that failed is.

    Raises:
        Refused: a setting of git config is not a number.
    """
    bound = place.present.binding.get(place.node.agent)
    agent = {} if bound is None else place.snapshot.get_node(bound).payload
    return read_retry(config, agent, place).retries


def _read(config: GitConfig, name: str, default: float) -> float:
    text = config.get(name)
    if not text:
        return default
    plain = text.replace(".", "", 1)
    if name == RETRIES:
        plain = text
    if not (plain.isascii() and plain.isdecimal() and len(plain) <= _MOST_DIGITS):
        kind = "a whole number" if name == RETRIES else "a number"
        raise Refused(
            f"{name} is {text[:40]!r}, not {kind}",
            code="bad-retry-setting",
            hint=f"set it anew: `uwf config set {name} 2`",
            setting=name,
        )
    return float(text)
