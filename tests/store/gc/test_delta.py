"""Deltas of delta.py are read by dulwich here, and by git in test_loose_pack.py."""

from dulwich.pack import apply_delta
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.store.gc.delta import make_delta, split_lines, split_tree

PIECES = st.lists(st.sampled_from([b"a\n", b"bb\n", b"ccc", b"d" * 70_000, b"e" * 300]), max_size=8)


def applied(base: list[bytes], delta: bytes) -> bytes:
    return b"".join(apply_delta(b"".join(base), delta))


@given(base=PIECES, target=PIECES)
def test_a_delta_applied_to_its_base_gives_the_target(
    base: list[bytes], target: list[bytes]
) -> None:
    assert applied(base, make_delta(base, target)) == b"".join(target)


@given(base=st.lists(st.binary(min_size=1)), target=st.lists(st.binary(min_size=1)))
def test_pieces_may_be_anything(base: list[bytes], target: list[bytes]) -> None:
    assert applied(base, make_delta(base, target)) == b"".join(target)


@given(st.binary())
def test_lines_put_together_are_the_file(content: bytes) -> None:
    assert b"".join(split_lines(content)) == content


def test_an_entry_may_hold_any_bytes_in_its_oid() -> None:
    entries = [b"100644 a\0" + b"\0" * 20, b"40000 b\0" + b" \0" * 10]
    assert split_tree(b"".join(entries)) == entries


def test_one_changed_entry_of_many_costs_little() -> None:
    entries = [b"100644 %03d\0" % number + bytes([number]) * 20 for number in range(40)]
    changed = [*entries[:20], b"100644 020\0" + b"x" * 20, *entries[21:]]
    assert len(make_delta(entries, changed)) < 50


def test_an_unchanged_object_is_one_copy() -> None:
    assert len(make_delta([b"line\n"] * 9, [b"line\n"] * 9)) < 8
