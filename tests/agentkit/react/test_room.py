"""A conversation that has grown too long."""

from uwf_git.agentkit.model_words import Outcome, Outcomes, Told
from uwf_git.agentkit.react.room import make_room


def turn(text: str) -> Outcomes:
    return Outcomes((Outcome("c", text), Outcome("d", "short", is_error=True)), "note")


def test_older_outcomes_are_left_out_with_a_note_and_newer_ones_stay() -> None:
    messages = (Told("y" * 9_999), turn("x" * 1_000), turn("x" * 1_000), turn("x" * 1_000))
    shorter = make_room(messages)
    assert shorter is not None
    assert shorter[0] == messages[0]
    assert shorter[2:] == messages[2:]
    first = shorter[1]
    assert isinstance(first, Outcomes)
    assert first.outcomes[0].text.startswith("[… 1,000 characters left out to make room")
    assert first.outcomes[1] == Outcome("d", "short", is_error=True)
    assert first.note == "note"


def test_what_cannot_be_made_shorter_is_told() -> None:
    assert make_room((Told("x" * 9_999), turn("x" * 999), turn("x" * 999))) is None
    assert make_room((Told("hi"), turn("a"), turn("b"), turn("c"))) is None
