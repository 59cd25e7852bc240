"""Many branches at once, on few processors."""

from library.crowd import Crowd


def test_32_branches_take_20_steps_each(store: str) -> None:
    Crowd(store, branches=32, steps=20).check(jobs=8)
