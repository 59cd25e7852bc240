"""Plain YAML is read as the reader reads it, and nothing else is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.yaml_reader import BadYaml, parse_yaml
from uwf_git.model.yaml_render import read_plain

_PIECES = st.sampled_from(
    [
        *("a", "b", "n", "null", "true", "no", "~", "1", "-1", "0x1F", "1e3", "1e999", ".5"),
        *("1.", "nan", ":", ": ", "- ", "#", " #", " ", "\n", "\t", "\r", "'", '"', "{", "["),
        *("&", "*", "!", "|", "---", "...", "%", "<<", "=", "é", "\x85", "-", "_", "/", "a: 1\n"),
        *("b: two words\n", "?"),
    ]
)
_LINES = st.lists(
    st.tuples(
        st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,5}", fullmatch=True),
        st.from_regex(r"[A-Za-z0-9+.-][A-Za-z0-9 ._/+-]{0,8}", fullmatch=True),
    ),
    min_size=1,
    max_size=5,
)


def _check(source: str) -> bool:
    """Compare with the reader; return whether the source was read at all."""
    plain = read_plain(source)
    if plain is None:
        return False
    whole = parse_yaml(source).value
    assert plain == whole
    assert list(map(type, plain.values())) == list(map(type, whole.values()))
    return True


@given(st.lists(_PIECES, max_size=12).map("".join))
def test_pieces_of_yaml_are_read_as_by_the_reader(source: str) -> None:
    _check(source)


@given(_LINES)
def test_lines_are_read_as_by_the_reader(lines: list[tuple[str, str]]) -> None:
    _check("".join(f"{key}: {value}\n" for key, value in lines))


@pytest.mark.parametrize(
    "source",
    ["n: 1\n", "n: -12", "ok: true\nwhy: all tests pass\n", "x: 0.5\ny: ~".replace("~", "null")],
)
def test_usual_front_matter_is_plain(source: str) -> None:
    assert _check(source)


def test_long_text_is_left_to_the_reader() -> None:
    assert read_plain("n: " + "a" * 70_000) is None


def test_reader_still_refuses_what_is_no_yaml() -> None:
    with pytest.raises(BadYaml):
        parse_yaml("n: a: b")
