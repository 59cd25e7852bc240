from uwf_git.store.oid import Oid
from uwf_git.store.store import OwnTransitions

A, B = Oid("a" * 40), Oid("b" * 40)


def test_what_was_recorded_and_moved_to_is_given_once_in_order() -> None:
    moves = OwnTransitions()
    for commit in (A, B):
        moves.note_recorded(commit)
    for commit in (B, A, A):
        moves.note_moved(commit)

    assert moves.take() == [B, A]
    assert moves.take() == []


def test_what_others_recorded_or_no_head_reached_is_not_ours() -> None:
    moves = OwnTransitions()
    moves.note_moved(A)
    moves.note_recorded(B)

    assert moves.take() == []
