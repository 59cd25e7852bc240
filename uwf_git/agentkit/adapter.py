"""Adapters: what drives one agent program or model, as the extraction ladder sees it.

Owns: a question, an answer, and the ways in which there is none.
Knows nothing of: how any one program is called.
Always true: an answer is given only when the program said itself that it had finished (a parsed
terminal record), never because of an exit status alone.
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
"""``usage``: its words were wrong; ``no-session``: the conversation is not known any more;
``no-result``: it ended without a terminal record; ``bad-output``: with one that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question to an adapter."""

    prompt: str

    schema: dict[str, Any] | bool | None = None
    """The JSON Schema of the meta, for programs that take one; None when words will do."""

    session: str | None = None
    """The conversation to go on with; None begins a new one."""

    spent: Mapping[str, Any] = field(default_factory=dict)
    """What that conversation has cost so far, for programs whose count goes on."""

    workdir: str = "."
    step_dir: str | None = None
    """A folder for the files of this step; None: the adapter makes one, and removes it."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """What was configured for this program: ``model``, ``permission``, ``args``, …."""

    environ: Mapping[str, str] = field(default_factory=dict)

    timeout_s: float | None = None
    silence_s: float | None = None
    """How long it may print nothing at all before it counts as hung."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an adapter's program answered."""

    text: str

    structured: Any = None
    """The object that the program itself holds for the meta; None if it has none."""

    session: str | None = None

    usage: Mapping[str, Any] = field(default_factory=dict)
    """Of this question alone, those that the program told of: ``inputTokens``, ``outputTokens``,
    ``cachedInputTokens``, ``reasoningTokens``, ``costUsd``, ``turns``. A number that was not
    told is left out: 0 would be a claim."""

    trace: tuple[Mapping[str, Any], ...] = ()
    """What it did, as objects with a ``type``, in the words that trace_words.py lists."""


class NoAnswer(AgentFailed):
    """The program did not finish an answer."""

    code = "no-answer"

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        hint: str | None = None,
        partial: Answer | None = None,
    ) -> None:
        super().__init__(message, hint=hint, kind=kind)
        self.kind = kind
        self.partial = partial
        """What had been said, and spent, by then."""


def classify_status(status: int) -> FailureKind:
    """Give the kind of failure that an HTTP status of a model's endpoint means."""
    return _STATUSES.get(status, "model-error")


_STATUSES: dict[int, FailureKind] = {
    401: "auth",
    402: "auth",
    403: "auth",
    413: "too-long",
    429: "rate-limit",
}


class Adapter(Protocol):
    """What the ladder needs of an adapter."""

    @property
    def name(self) -> str:
        """The name by which people and settings know the program."""

    @property
    def takes_schema(self) -> bool:
        """Whether it takes a JSON Schema, and gives the object back."""

    @property
    def resumes(self) -> bool:
        """Whether a conversation can be gone on with."""

    def ask(self, asked: Asked) -> Answer:
        """Ask, and wait for the answer.

        Raises:
            NoAnswer: there is none.
        """
