"""A conversation that has grown too long."""

from uwf_git.agentkit.llm.messages import ToolResult, ToolResults, UserMessage
from uwf_git.agentkit.react.room import make_room


def turn(text: str) -> ToolResults:
    return ToolResults((ToolResult("c", text), ToolResult("d", "short", is_error=True)), "note")


def test_older_outcomes_are_left_out_with_a_note_and_newer_ones_stay() -> None:
    messages = (UserMessage("y" * 9_999), turn("x" * 1_000), turn("x" * 1_000), turn("x" * 1_000))
    shorter = make_room(messages)
    assert shorter is not None
    assert shorter[0] == messages[0]
    assert shorter[2:] == messages[2:]
    first = shorter[1]
    assert isinstance(first, ToolResults)
    assert first.results[0].text.startswith("[… 1,000 characters left out to make room")
    assert first.results[1] == ToolResult("d", "short", is_error=True)
    assert first.note == "note"


def test_messages_that_cannot_be_made_shorter_are_reported() -> None:
    assert make_room((UserMessage("x" * 9_999), turn("x" * 999), turn("x" * 999))) is None
    assert make_room((UserMessage("hi"), turn("a"), turn("b"), turn("c"))) is None
