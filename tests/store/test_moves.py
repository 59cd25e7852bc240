from uwf_git.store.moves import Moves
from uwf_git.store.refs import Oid

A, B = Oid("a" * 40), Oid("b" * 40)


def test_what_was_recorded_and_moved_to_is_given_once_in_order() -> None:
    moves = Moves()
    for commit in (A, B):
        moves.note_recorded(commit)
    for commit in (B, A, A):
        moves.note_moved(commit)

    assert moves.take() == [B, A]
    assert moves.take() == []


def test_what_others_recorded_is_not_ours() -> None:
    moves = Moves()
    moves.note_moved(A)

    assert moves.take() == []


def test_what_no_head_reached_has_not_happened() -> None:
    moves = Moves()
    moves.note_recorded(A)

    assert moves.take() == []
