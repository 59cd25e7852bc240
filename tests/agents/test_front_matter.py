import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agents.reply import FrontMatter, FrontMatterUnclosed, split_front_matter


@pytest.mark.parametrize(
    ("text", "source", "content", "line"),
    [
        ("---\na: 1\n---\ntext\n", "a: 1\n", "text\n", 2),
        ("---\na: 1\n---\n\n  text", "a: 1\n", "\n  text", 2),
        ("---\na: 1\n---", "a: 1\n", "", 2),
        ("---\n---\n", "", "", 2),
        ("---\r\na: 1\r\n---\r\ntext\r\n", "a: 1\r\n", "text\r\n", 2),
        ("--- \t\na: 1\n---  \ntext", "a: 1\n", "text", 2),
        ("\ufeff---\na: 1\n---\n", "a: 1\n", "", 2),
        ("\n \t\r\n---\na: 1\n---\n", "a: 1\n", "", 4),
        ("---\na: 1\n---\n---\nb: 2\n---\n", "a: 1\n", "---\nb: 2\n---\n", 2),
        ("---\na: 1\n ---\n----\n---x\n---\n", "a: 1\n ---\n----\n---x\n", "", 2),
        ("---\na: \u2028---\u2028\x0b---\x0b\n---\nt", "a: \u2028---\u2028\x0b---\x0b\n", "t", 2),
    ],
)
def test_front_matter_is_taken_apart(text: str, source: str, content: str, line: int) -> None:
    assert split_front_matter(text) == FrontMatter(source, content, line)


@pytest.mark.parametrize("text", ["", "\n\n", "text\n---\na: 1\n---\n", "----\n", " ---\na\n---\n"])
def test_other_texts_have_none(text: str) -> None:
    assert split_front_matter(text) is None


@pytest.mark.parametrize(("text", "line"), [("---", 1), ("---\na: 1\n", 1), ("\n\n---\n--\n", 3)])
def test_unclosed_front_matter_is_reported(text: str, line: int) -> None:
    with pytest.raises(FrontMatterUnclosed, match=f"begins on line {line} has no closing ---"):
        split_front_matter(text)


@given(st.text())
def test_content_is_kept_character_by_character(content: str) -> None:
    front = split_front_matter(f"---\na: 1\n---\n{content}")

    assert front is not None
    assert front.content == content
