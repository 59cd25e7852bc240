"""Deltas are read by dulwich here, and by git in test_pack_without_git.py."""

import pytest
from dulwich.pack import apply_delta
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.store.gc import delta
from uwf_git.store.gc.delta import make_delta

PIECES = st.lists(st.sampled_from([b"a\n", b"bb\n", b"ccc", b"d" * 70_000, b"e" * 300]), max_size=8)


@given(base=PIECES, target=PIECES)
def test_a_delta_applied_to_its_base_gives_the_target(
    base: list[bytes], target: list[bytes]
) -> None:
    whole, wanted = b"".join(base), b"".join(target)
    made = make_delta(whole, wanted)
    if made is not None:
        assert len(made) < len(wanted)
        assert b"".join(apply_delta(whole, made)) == wanted


def test_one_changed_entry_of_many_costs_little() -> None:
    entries = [b"100644 %03d\0" % number + bytes([number]) * 20 for number in range(40)]
    changed = [*entries[:20], b"100644 020\0" + b"x" * 20, *entries[21:]]
    made = make_delta(b"".join(entries), b"".join(changed))
    assert made is not None
    assert len(made) < 50


def test_what_has_nothing_in_common_stays_whole() -> None:
    assert make_delta(bytes(range(100)), bytes(range(100, 200))) is None


def test_without_the_extension_everything_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "_IS_FAST", False)
    assert make_delta(b"line\n" * 99, b"line\n" * 99) is None
