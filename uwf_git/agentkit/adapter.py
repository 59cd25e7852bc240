"""The interface of adapters: a question, an answer, a failure.

An adapter drives one agent program or model. It answers only from the program's own final record,
never because of an exit status alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from uwf_git.errors import AgentFailed

FailureKind = Literal[
    "missing", "usage", "auth", "rate-limit", "model-error", "refused-permission", "no-session",
    "no-result", "bad-output", "too-long", "timed-out", "silent", "too-much-output",
    "interrupted", "crashed",
]  # fmt: skip
"""``no-session``: lost; ``no-result``: no final record; ``bad-output``: an unreadable record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterQuestion:
    """One question to an adapter."""

    prompt: str

    schema: dict[str, Any] | bool | None = None
    """The JSON Schema of the meta, for programs that take one; None to ask in words."""

    session: str | None = None
    """The conversation to resume; None starts a new one."""

    spent: Mapping[str, Any] = field(default_factory=dict)
    """What that conversation has cost so far, for programs that report its whole usage."""

    workdir: str = "."
    step_dir: str | None = None
    """A folder for the files of this step; None: the adapter makes a temporary one."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """The settings of this program: ``model``, ``permission``, ``args``, …."""

    environ: Mapping[str, str] = field(default_factory=dict)

    timeout_s: float | None = None
    silence_s: float | None = None
    """How long it may print nothing before it is stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterAnswer:
    """The answer of an adapter's program."""

    text: str

    structured: Any = None
    """The meta, if the program reports it as an object; else None."""

    session: str | None = None

    usage: Mapping[str, Any] = field(default_factory=dict)
    """Of this question alone, as far as the program reports it: ``inputTokens``, ``outputTokens``,
    ``cachedInputTokens``, ``reasoningTokens``, ``costUsd``, ``turns``. An unknown number is left
    out, not 0."""

    trace: tuple[Mapping[str, Any], ...] = ()
    """What it did, as objects with a ``type``; tests/agentkit/traces.py lists their keys."""


class AskFailed(AgentFailed):
    """The program or model gave no complete answer."""

    code = "ask-failed"

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        partial: AdapterAnswer | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(message, code=code, hint=hint, kind=kind, **facts)
        self.kind = kind
        self.partial = partial


def classify_status(status: int) -> FailureKind:
    """Return the kind of failure for an HTTP status of a model's endpoint."""
    return _STATUSES.get(status, "model-error")


_STATUSES: dict[int, FailureKind] = {
    401: "auth",
    402: "auth",
    403: "auth",
    413: "too-long",
    429: "rate-limit",
}


class Adapter(Protocol):
    """Drives one program or model."""

    @property
    def name(self) -> str:
        """The name of the program in settings and messages."""

    @property
    def takes_schema(self) -> bool:
        """Whether it takes a JSON Schema and returns the object."""

    @property
    def resumes(self) -> bool:
        """Whether it can resume a conversation."""

    def ask(self, question: AdapterQuestion) -> AdapterAnswer:
        """Ask, and wait for the answer."""
