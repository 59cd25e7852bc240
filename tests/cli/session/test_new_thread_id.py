from hypothesis import given
from hypothesis import strategies as st

from uwf_git.cli.session import thread_id_at

TIMES = st.integers(0, 2**48 - 1)
ENTROPY = st.binary(min_size=10, max_size=10)


def test_example_of_the_specification() -> None:
    # https://github.com/ulid/javascript: its seedTime example begins so.
    assert thread_id_at(1469918176385, bytes(10)) == "01ARYZ6S410000000000000000"


@given(st.tuples(TIMES, ENTROPY), st.tuples(TIMES, ENTROPY))
def test_ids_sort_by_time_then_entropy(one: tuple[int, bytes], other: tuple[int, bytes]) -> None:
    assert (thread_id_at(*one) < thread_id_at(*other)) == (one < other)
