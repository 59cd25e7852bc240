from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.diff import Pair, align

WORDS = st.lists(st.sampled_from("abc"), max_size=12)


def longest(one: list[str], other: list[str]) -> int:
    """Count the longest common subsequence the slow way."""
    row = [0] * (len(other) + 1)
    for each in one:
        before = row
        row = [0]
        for at, its in enumerate(other):
            row.append(before[at] + 1 if each == its else max(before[at + 1], row[at]))
    return row[-1]


@given(WORDS, WORDS)
def test_every_position_is_named_once_in_order_and_pairs_are_equal(
    one: list[str], other: list[str]
) -> None:
    pairs = align(one, other)

    assert [pair.one for pair in pairs if pair.one is not None] == list(range(len(one)))
    assert [pair.other for pair in pairs if pair.other is not None] == list(range(len(other)))
    for pair in pairs:
        assert pair.one is None or pair.other is None or one[pair.one] == other[pair.other]
        assert pair != Pair(None, None)


@given(WORDS, WORDS)
def test_as_many_as_can_be_are_in_pairs(one: list[str], other: list[str]) -> None:
    paired = [pair for pair in align(one, other) if None not in pair]

    assert len(paired) == longest(one, other)


def test_what_has_no_partner_comes_first_from_the_one() -> None:
    assert align("axb", "ayb") == [Pair(0, 0), Pair(1, None), Pair(None, 1), Pair(2, 2)]


def test_too_many_differences_leave_only_the_ends_in_pairs() -> None:
    one = ["start", *map(str, range(2, 3000, 2)), "end"]
    other = ["start", *map(str, range(3, 3000, 3)), "end"]

    paired = [pair for pair in align(one, other) if None not in pair]

    assert paired == [Pair(0, 0), Pair(len(one) - 1, len(other) - 1)]


def test_long_sequences_that_repeat_themselves_take_no_time() -> None:
    roles = ["writer", "checker"] * 20_000

    assert len(align(roles, roles[: 3 * len(roles) // 4])) == len(roles)
