from hypothesis import given
from hypothesis import strategies as st

from uwf_git.store.objects.pack_file import ByteCache


def test_oldest_goes_first() -> None:
    cache: ByteCache[str, str] = ByteCache(10)
    for key in "abc":
        cache.put(key, key.upper(), 4)
    assert [cache.get(key) for key in "abc"] == [None, "B", "C"]


def test_what_is_too_large_is_not_held_and_takes_no_room() -> None:
    cache: ByteCache[str, str] = ByteCache(10, largest=5)
    cache.put("a", "A", 5)
    cache.put("b", "B", 6)
    assert (cache.get("a"), cache.get("b")) == ("A", None)


def test_what_is_held_already_takes_no_more_room() -> None:
    cache: ByteCache[str, str] = ByteCache(10)
    cache.put("a", "A", 5)
    for _time in range(5):
        cache.put("b", "B", 5)
    assert (cache.get("a"), cache.get("b")) == ("A", "B")


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30))))
def test_it_holds_the_newest_that_have_room(puts: list[tuple[int, int]]) -> None:
    cache: ByteCache[int, int] = ByteCache(50, largest=20)
    held: dict[int, int] = {}
    for key, size in puts:
        cache.put(key, -key, size)
        if size <= 20 and key not in held:
            held[key] = size
            while sum(held.values()) > 50:
                del held[next(iter(held))]
    assert {key for key in range(10) if cache.get(key) is not None} == held.keys()
