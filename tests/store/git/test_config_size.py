import pytest

from uwf_git.store.git.config import parse_size


def test_size_has_git_s_suffixes() -> None:
    sizes = [parse_size(text) for text in ("0", "512", "64k", "2M", "1g")]
    assert sizes == [0, 512, 65536, 2 * 1024**2, 1024**3]


@pytest.mark.parametrize("text", ["", "k", "-1", "1.5", "64kb", "1 k", "٣"])
def test_anything_else_is_none(text: str) -> None:
    assert parse_size(text) is None
