"""What the settings say of a turn: how often it is tried again, and what it keeps."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from uwf_git.commands.family import list_branches
from uwf_git.engine.masking import MASK, find_secrets, is_secret_name, mask
from uwf_git.errors import Refused
from uwf_git.model.limits import LIMITS, Spent, find_limit_problem, find_spent, find_time_left_s
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ThreadState, add_usage
from uwf_git.store.git.config import GitConfig, parse_size
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.history import Snapshot, read_root, read_snapshot

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


class KeepRules(NamedTuple):
    log_bytes: int = DEFAULT_LOG_BYTES
    """The most bytes of the agent's log; 0 keeps none."""

    env: tuple[str, ...] = ()
    """The names of the variables; ``*`` in one stands for anything."""


def read_keep_rules(config: GitConfig) -> KeepRules:
    text = config.get(KEEP_LOGS) or ""
    size = parse_size(text) if text else DEFAULT_LOG_BYTES
    if size is None:
        raise Refused(
            f"{KEEP_LOGS} is {text[:40]!r}, not a size such as 64k",
            code="bad-keep-setting",
            hint=f"set it anew: `uwf config set {KEEP_LOGS} 64k`; 0 keeps no logs",
            setting=KEEP_LOGS,
        )
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


# Limits of a thread: choose them at the start, and refuse a step beyond them.
#
# The order: option, workflow, none. How they are counted: model/limits.py.


class LimitReached(Refused):
    code = "limit-reached"

    def __init__(self, thread: ThreadId, spent: Spent) -> None:
        super().__init__(
            f"thread {thread} is at its limit: {spent.told}",
            hint=f"give it more with `uwf thread amend {thread} {_option(spent.name)}`, or end it "
            f"with `uwf thread kill {thread}`",
            thread=thread,
            limit=spent.name,
            used=spent.used,
            of=spent.limit,
        )


def _option(name: str) -> str:
    return f"{LIMITS[name].option} {LIMITS[name].metavar}"


def check_asked(asked: Mapping[str, Any]) -> None:
    """Check names and values of limits; None removes one."""
    for name, value in asked.items():
        takes_away = value is None and name in LIMITS
        problem = None if takes_away else find_limit_problem(name, value)
        if problem is not None:
            raise Refused(
                f"{name[:60]} {problem}",
                code="bad-limit",
                hint=f"limits are {', '.join(LIMITS)}",
                limit=name,
            )


def choose_limits(asked: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of a new thread: as *asked*, else as its workflow's *config* says."""
    given = {name: config[name] for name in LIMITS if name in config}
    merged = {**given, **asked}
    check_asked(merged)
    # In a fixed order, so that equal threads begin with equal nodes.
    return {name: merged[name] for name in LIMITS if merged.get(name) is not None}


def check_limits(thread: ThreadId, present: ThreadState) -> None:
    """Raise ``LimitReached`` if the thread may take no further step."""
    spent = find_spent(present)
    if spent is not None:
        raise LimitReached(thread, spent)


def tell_cut_short(
    limited: "Spending", *, who: str, own_s: float | None, spent_ms: int = 0
) -> tuple[str, str] | None:
    """Return cause and hint if the thread's limit, not *own_s*, cut *who* short; else None."""
    left_s = find_time_left_s(limited.present, spent_ms=spent_ms)
    if left_s is None or (own_s is not None and own_s <= left_s):
        return None
    cause = f"{who} took longer than the {left_s:.1f} s of execution time that the thread had left"
    more = f"`uwf thread amend {limited.thread} {_option('maxExecutionTime')}` gives it more"
    return f"{cause}, and was stopped", f"nothing was lost: {more}"


# What a thread and its branches spent: the limits of a thread are for all of them together.


class Spending(NamedTuple):
    thread: ThreadId
    """Whose limits they are: the thread's own, or its trunk's."""

    present: ThreadState
    """That thread's state, with what its branches spent; ``depth`` counts all steps."""


def read_spending(store: Store, snapshot: Snapshot, present: ThreadState) -> Spending:
    """Return the limits of the thread at *snapshot*, and what was spent of them here."""
    root = read_root(store, snapshot)
    at_root = present if root is snapshot else root.get_present()
    # Without limits nobody asks what the branches spent.
    spent = add_branches(store, root, at_root) if at_root.limits else _count_joined(at_root)
    return Spending(root.record.thread, spent)


def add_branches(store: Store, at: Snapshot, present: ThreadState) -> ThreadState:
    """Return *present*, the thread's state at *at*, with what its branches spent until now.

    Its ``depth`` counts all steps, those of joined branches as well.
    """
    spent = _count_joined(present)
    return spent if present.split is None else _add_open_branches(store, at, spent)


def _count_joined(present: ThreadState) -> ThreadState:
    return present._replace(depth=sum(present.visits.values()) or present.depth)


def find_limit(store: Store, snapshot: Snapshot) -> LimitReached | None:
    spending = read_spending(store, snapshot, snapshot.get_present())
    spent = find_spent(spending.present)
    return None if spent is None else LimitReached(spending.thread, spent)


def find_steps_left(store: Store, thread: ThreadId) -> int | None:
    """Return how many steps *thread* and its branches may still begin; None: no limit."""
    snapshot = read_snapshot(store, get_head(store, thread).commit)
    present = read_spending(store, snapshot, snapshot.get_present()).present
    most = present.limits.get("maxSteps")
    return None if most is None else most - present.depth


def _add_open_branches(store: Store, at: Snapshot, spent: ThreadState) -> ThreadState:
    inherited = sum(at.get_present().visits.values())
    for branch in list_branches(store, at):
        if branch.head is None:
            continue
        inner = read_snapshot(store, branch.head.commit)
        present = inner.get_present()
        known = inherited if "entry" in inner.get_start().payload else 0
        usage: dict[str, Any] = add_usage(dict(spent.usage), dict(present.usage))
        spent = spent._replace(
            depth=spent.depth + sum(present.visits.values()) - known,
            usage=usage,
            execution_ms=spent.execution_ms + present.execution_ms,
        )
        if present.split is not None:
            spent = _add_open_branches(store, inner, spent)
    return spent
