"""What an agent process is given (`AgentRequest`) and what it left (`AgentRun`)."""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

RunOutcome = Literal[
    "exited", "timed-out", "too-much-output", "interrupted", "lost", "dismissed"
]  # fmt: skip

DEFAULT_MAX_OUTPUT_BYTES = 16 * 1024 * 1024
DEFAULT_MAX_LOG_BYTES = 64 * 1024
DEFAULT_GRACE_S = 5.0


OnOutput = Callable[[bytes], None]
"""Receives a piece of output, which may end in the middle of a character."""


OnTick = Callable[[], None]


class Listener(NamedTuple):
    """Callbacks that receive an agent's output while it runs."""

    on_stderr: OnOutput | None = None

    on_stdout: OnOutput | None = None
    """Its reply, piece by piece."""

    on_tick: OnTick = lambda: None
    """Called some times a second, with or without output."""

    is_done: Callable[[], bool] = lambda: False
    """Called as often: the agent has done its part, and is ended if it is still there."""


class AgentRequest(NamedTuple):
    """All that an agent's process is given; nothing else reaches it."""

    argv: tuple[str, ...]
    """The program as ``resolve_program`` found it, then its arguments."""

    environment: Mapping[str, str]
    """The whole environment: nothing is inherited. A dash as /bin/sh drops names like ``a.b``."""

    workdir: str

    run_dir: str
    """An absolute path where no agent began yet; stdout, stderr, pid and exit are created there."""

    timeout_s: float | None = None
    """None: no limit."""

    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    """The limit for stdout, and for stderr."""

    max_log_bytes: int = DEFAULT_MAX_LOG_BYTES
    """How much of the end of stderr is returned."""

    kept_fds: tuple[int, ...] = ()
    """Descriptors that the agent inherits, such as the lock that it holds while it lives."""

    grace_s: float = DEFAULT_GRACE_S
    """Time between SIGTERM and SIGKILL."""

    is_all_log: bool = False
    """What it prints on stdout goes into the log too, in order; no answer is expected."""


class AgentRun(NamedTuple):
    outcome: RunOutcome
    """``exited`` says nothing about the answer; ``lost``: no status; ``dismissed``: work done."""

    exit_code: int | None
    """128 + n if signal n ended the agent; None if we killed the agent."""

    stdout: bytes

    stderr: bytes
    """The end of the log, where the reasons are."""

    started_ms: int
    """Milliseconds since 1970."""

    duration_ms: int
    left_running: tuple[str, ...] = ()
    """What an agent that ended well has started and not ended: ``sleep (4711)``."""
