"""Failure words: what a program's own words about its failure mean, and our words for it.

Owns: the words by which agent programs tell of limits, logins, permissions and sessions; the
sentences for ends that all of them may come to.
Knows nothing of: any one program, how its words were found.
Always true: a message is one line, names the program, and holds what that said, so that a time at
which a limit ends is never lost.
"""

import re

from uwf_git.agentkit.adapter import Answer, FailureKind, NoAnswer, classify_status
from uwf_git.agentkit.command_adapter import Ended
from uwf_git.agents.one_line import on_one_line

_LONGEST_WORDS = 500
_SIGNALLED = 128

# None of these is compiled before it is needed: that takes 2 ms, and most programs do not fail.
_STATUS = (
    r"(?i)(?:\bstatus(?: code)?|\bHTTP(?: error)?|\bAPI error|\"?\bcode\"?)\W{0,4}([45]\d\d)\b"
)

_LIMIT = (
    r"rate.?limit|(usage|session|weekly|spend|fast) limit|hit your .{0,40}limit|quota"
    r"|too many requests|resource.?exhausted|exhausted your"
)
_LENGTH = (
    r"prompt is too long|context.{0,10}(length|window)|maximum.{0,12}(context|tokens)"
    r"|too (large|many (input )?tokens)|input exceeds"
)
_LOGIN = (
    r"unauthori[sz]ed|authenticat|auth method|not logged in|/login|log ?in again|api.?key"
    r"|credit balance|permission.?denied"
)
_WORDS: tuple[tuple[FailureKind, str], ...] = (
    ("rate-limit", _LIMIT),
    ("too-long", _LENGTH),
    ("auth", _LOGIN),
)

_ERROR_LINE = r"(?i)^\s*(?:fatal )?error\b:?\s*(?P<words>.*\w.*)$"

_HELP = r"(?i)usage:\s"


def classify_words(words: str, *, status: int | None = None) -> FailureKind:
    """Give the kind of failure that *words* tell of; an HTTP status, if one is told, decides."""
    told = status if status is not None else _find_status(words)
    kind = "model-error" if told is None else classify_status(told)
    if kind != "model-error":
        return kind
    found = (kind for kind, pattern in _WORDS if re.search(pattern, words, re.IGNORECASE))
    return next(found, "model-error")


def explain_words(
    name: str, words: str, *, status: int | None = None, login: str, partial: Answer | None = None
) -> NoAnswer:
    """Make of what the program *name* said about its failure the error that it is.

    *login* tells how to log in, in case that is the matter.
    """
    said = on_one_line(words).strip()[:_LONGEST_WORDS] or "it did not say why"
    kind = classify_words(words, status=status)
    hint = login if kind == "auth" else None
    return NoAnswer(kind, f"{name}: {said}", hint=hint, partial=partial)


def with_reset(failure: NoAnswer, reset_s: int | None) -> NoAnswer:
    """Let *failure* tell when the limit that was hit ends (``resetAt``, in milliseconds)."""
    if reset_s is not None and failure.kind == "rate-limit":
        # The calendar comes with it, and few failures have a date.
        from uwf_git.model.time_text import render_time  # noqa: PLC0415 (see above)

        failure.facts["resetAt"] = reset_s * 1000
        failure.hint = f"it says that the limit ends at {render_time(reset_s * 1000)}"
    return failure


def explain_no_record(
    name: str, ended: Ended, *, login: str, partial: Answer | None = None
) -> NoAnswer:
    """Tell of a program that ended without its terminal record, whatever its exit status.

    One that had not begun to answer either was called wrongly, or could not begin; then its
    stderr says why.
    """
    status = ended.run.exit_code
    words, is_error = find_last_words(ended.run.stderr)
    if status > _SIGNALLED and not is_error:
        message = f"{name} was ended by signal {status - _SIGNALLED}, before it had a result"
        return NoAnswer("crashed", message, partial=partial)
    message = f"{name} ended without a result, with exit status {status}"
    if not words:
        return NoAnswer("no-result", message, partial=partial)
    kind = classify_words(words)
    if kind == "model-error":
        kind = "usage" if status and not ended.run.stdout.strip() else "no-result"
    hint = login if kind == "auth" else None
    return NoAnswer(kind, f"{message}: {words}", hint=hint, partial=partial)


def explain_unknown_session(name: str, ended: Ended) -> NoAnswer:
    """Tell that the program *name* had nothing to go on with."""
    session = ended.asked.session or ""
    return NoAnswer("no-session", f"{name} does not know the session {session:.60} any more")


def require_good_end(name: str, ended: Ended, answer: Answer, *, after: str) -> None:
    """See to it that a program whose terminal record, *after*, is fine also ended well.

    Raises:
        NoAnswer: its exit status says otherwise.
    """
    if ended.run.exit_code:
        message = f"{name} ended with exit status {ended.run.exit_code} after its {after}"
        raise NoAnswer("crashed", message, partial=answer)


def require_words(name: str, answer: Answer) -> None:
    """See to it that a program that ended well has answered.

    Raises:
        NoAnswer: it said nothing.
    """
    if not answer.text.strip() and answer.structured is None:
        raise NoAnswer("no-result", f"{name} ended well, but said nothing", partial=answer)


def find_last_words(stderr: bytes) -> tuple[str, bool]:
    """Give the last line in which *stderr* tells of an error, and that it does; else its last.

    The line before a help page that nobody asked for tells of one as well.
    """
    lines = [line.strip() for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    helped = next((number for number, line in enumerate(lines) if re.match(_HELP, line)), None)
    if helped:
        lines = lines[:helped]
    found = [match for line in lines if (match := re.match(_ERROR_LINE, line))]
    said = found[-1]["words"] if found else lines[-1] if lines else ""
    return on_one_line(said)[:_LONGEST_WORDS], bool(found or helped)


def _find_status(words: str) -> int | None:
    found = re.search(_STATUS, words)
    return int(found[1]) if found else None
