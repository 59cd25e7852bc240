"""The words of a trace: which events there are, and what each one tells.

Owns: the one vocabulary of all adapters. Knows nothing of: any program's own words; files.
Always true: whoever reads a trace finds the same under the same name, whichever agent left it. A
value that the program did not tell is null. ``time``, in milliseconds since 1970, is added to
each event when it is written (step_files.py).
"""

from typing import NamedTuple


class Words(NamedTuple):
    """The keys of one kind of event, besides ``type``."""

    always: frozenset[str]
    sometimes: frozenset[str] = frozenset()


def _words(always: str, sometimes: str = "") -> Words:
    return Words(frozenset(always.split()), frozenset(sometimes.split()))


TRACE_WORDS = {
    "message": _words("text"),
    "tool": _words("name input output ok", "kind durationMs details"),
    "permission": _words("name allowed", "kind input"),
    "turn": _words("model usage", "way"),
    "warning": _words("message"),
    "error": _words("kind message"),
    "correction": _words("problem"),
    "rung": _words("rung"),
}
"""By its ``type``, what an event tells:

- ``message``: what the agent said on its way, in ``text``; its last words are the answer.
- ``tool``: a call of a tool with what it was given (``input``) and gave (``output``), and whether
  it did its work (``ok``; not if the end was not told). ``kind`` is the agent's own word for tools
  of that sort (read, edit, execute), ``details`` what else its program tells, in its own words.
- ``permission``: something that the agent asked for, or tried, and whether it was ``allowed``.
- ``turn``: one answer of a model, with its ``usage``; ``way``: how an object was asked for.
- ``warning``: what somebody should know, though it ends nothing.
- ``error``: why a question had no answer; ``kind`` is a ``FailureKind``.
- ``correction``: the agent is asked again, because of the ``problem``.
- ``rung``: the rung of the ladder on which the fields were found.
"""
