"""Deltas are read by dulwich here, and by git in test_pack_without_git.py."""

import os
import time

import pytest
from dulwich.pack import apply_delta
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.store.gc import delta
from uwf_git.store.gc.delta import make_delta

PIECES = st.lists(st.sampled_from([b"a\n", b"bb\n", b"ccc", b"d" * 5_000, b"e" * 300]), max_size=8)


@given(base=PIECES, target=PIECES)
def test_a_delta_applied_to_its_base_gives_the_target(
    base: list[bytes], target: list[bytes]
) -> None:
    whole, wanted = b"".join(base), b"".join(target)
    made = make_delta(base, target)
    if made is not None:
        assert len(made) <= len(wanted)
        assert b"".join(apply_delta(whole, made)) == wanted


def test_one_changed_entry_of_many_costs_little() -> None:
    entries = [b"100644 %03d\0" % number + bytes([number]) * 20 for number in range(40)]
    changed = [*entries[:20], b"100644 020\0" + b"x" * 20, *entries[21:]]
    made = make_delta(entries, changed)
    assert made is not None
    assert len(made) < 50


def test_what_has_little_in_common_stays_whole_and_takes_no_time() -> None:
    began = time.process_time()
    one, other = ([os.urandom(30) for _line in range(2000)] for _text in range(2))
    assert make_delta(one, other) is None
    assert make_delta(one[:30] + one, one[:30] + other) is None
    assert time.process_time() - began < 0.2


def test_without_the_extension_everything_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "_IS_FAST", False)
    assert make_delta([b"line\n"] * 99, [b"line\n"] * 99) is None
