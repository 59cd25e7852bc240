"""Shorten a conversation that is too long for the model: drop old tool results, with a note."""

from uwf_git.agentkit.llm.messages import Message, ToolResults

_KEPT_TURNS = 2
_SHORT = 400
_NOTE = "[… {:,} characters left out to make room; call the tool again if you need them …]"


def make_room(messages: tuple[Message, ...]) -> tuple[Message, ...] | None:
    """Return *messages* without the long results of older calls; None if there are none."""
    turns = [number for number, each in enumerate(messages) if isinstance(each, ToolResults)]
    kept = set(turns[-_KEPT_TURNS:])
    shorter = tuple(
        _shorten(each) if isinstance(each, ToolResults) and number not in kept else each
        for number, each in enumerate(messages)
    )
    return None if shorter == messages else shorter


def _shorten(message: ToolResults) -> ToolResults:
    results = tuple(
        each if len(each.text) <= _SHORT else each._replace(text=_NOTE.format(len(each.text)))
        for each in message.results
    )
    return message._replace(results=results)
