"""Requests and runs: what it takes to run an agent once, and what came of it.

Owns: the values that cross the border between whoever wants an agent run and the processes.
Knows nothing of: how it is run, and what the output means.
"""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

Outcome = Literal["exited", "timed-out", "too-much-output", "interrupted", "lost"]

DEFAULT_MAX_OUTPUT_BYTES = 16 * 1024 * 1024
DEFAULT_GRACE_S = 5.0


OnOutput = Callable[[bytes], None]
"""Hears a piece of output, which may end in the middle of a character."""


OnTick = Callable[[], None]


def ignore_tick() -> None:
    """Do nothing."""


class Listener(NamedTuple):
    """Who hears what an agent prints, while it prints it."""

    on_stderr: OnOutput | None = None
    """The agent's log; None if nobody wants it."""

    on_stdout: OnOutput | None = None
    """What it prints as its reply; None if nobody wants it before it is whole."""

    on_tick: OnTick = ignore_tick
    """Called some times a second, whether there is anything new or not."""


class AgentRequest(NamedTuple):
    """All that an agent's process is given; nothing else reaches it."""

    argv: tuple[str, ...]
    """The program as ``resolve_program`` found it, then its arguments."""

    environment: Mapping[str, str]
    """All of it: nothing is inherited. Names that are no shell identifiers (``a.b``) do not
    arrive where /bin/sh is dash, which drops them."""

    workdir: str
    """Where the agent stands."""

    run_dir: str
    """An absolute path at which nothing has run yet; stdout, stderr, pid and exit land there."""

    timeout_s: float | None = None
    """None: as long as it takes."""

    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    """The most that stdout, and stderr, may hold."""

    kept_fds: tuple[int, ...] = ()
    """Open files that the agent inherits, such as a lock that is held as long as it lives."""

    grace_s: float = DEFAULT_GRACE_S
    """How long an agent that was asked to stop may take before it is killed."""


class AgentRun(NamedTuple):
    """What came of one run."""

    outcome: Outcome
    """``exited`` is no verdict on the answer; ``lost`` means that nobody knows the status."""

    exit_code: int | None
    """128 + n when signal n ended the agent; None when there is none, since we killed it."""

    stdout: bytes
    """At most the limit of the request."""

    stderr: bytes
    """The end of it, where the reasons are."""

    started_ms: int
    """Milliseconds since 1970."""

    duration_ms: int
