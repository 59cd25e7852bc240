"""Room: a conversation that has grown longer than the model can read.

Owns: what is left out of it. Knows nothing of: endpoints.
Always true: nothing is left out without a note in its place; what we and the model said stays.
"""

from uwf_git.agentkit.model_words import Message, Outcomes

_KEPT_TURNS = 2
_SHORT = 400
_NOTE = "[… {:,} characters left out to make room; call the tool again if you need them …]"


def make_room(messages: tuple[Message, ...]) -> tuple[Message, ...] | None:
    """Give *messages* without the long outcomes of older calls; None if there are none."""
    turns = [number for number, each in enumerate(messages) if isinstance(each, Outcomes)]
    kept = set(turns[-_KEPT_TURNS:])
    shorter = tuple(
        _shorten(each) if isinstance(each, Outcomes) and number not in kept else each
        for number, each in enumerate(messages)
    )
    return None if shorter == messages else shorter


def _shorten(message: Outcomes) -> Outcomes:
    outcomes = tuple(
        each if len(each.text) <= _SHORT else each._replace(text=_NOTE.format(len(each.text)))
        for each in message.outcomes
    )
    return message._replace(outcomes=outcomes)
