from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.diff import diff_texts

TEXTS = st.lists(st.sampled_from(["a", "b", "\n", "\r", "\x0b", "\u2028", "-", "é", "\\"])).map(
    "".join
)


def patched(text: str, diff: str) -> str:
    """Apply a unified diff by its line numbers alone."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1:] = [lines[-1][:-1]] if lines[-1] != "\n" else []
    made, at = "", 0
    for hunk in diff.split("\n@@ -")[1:]:
        header, *body = hunk.removesuffix("\n").split("\n")
        start, _comma, count = header.partition(" ")[0].partition(",")
        begin = int(start) - (count != "0")
        made += "".join(lines[at:begin])
        at = begin
        for number, line in enumerate(body):
            ends = not (number + 1 < len(body) and body[number + 1].startswith("\\"))
            told = line[1:] + ("\n" if ends else "")
            if line.startswith((" ", "-")):
                assert lines[at] == told
                at += 1
            if line.startswith((" ", "+")):
                made += told
    return made + "".join(lines[at:])


@given(TEXTS, TEXTS)
def test_diff_makes_the_other_text_of_the_one(one: str, other: str) -> None:
    assert patched(one, diff_texts(one, other)) == other


@given(TEXTS)
def test_text_does_not_differ_from_itself(text: str) -> None:
    assert diff_texts(text, text) == ""


def test_three_lines_stand_around_what_differs() -> None:
    one = "".join(f"{number}\n" for number in range(20))
    other = one.replace("5\n", "five\n", 1).replace("16\n", "")

    assert diff_texts(one, other, names=("x", "y")) == (
        "--- x\n+++ y\n"
        "@@ -3,7 +3,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        "@@ -14,7 +14,6 @@\n 13\n 14\n 15\n-16\n 17\n 18\n 19\n"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("", "new\n"),
        ("old", ""),
        ("a\nb", "a\nb\n"),
        ("a\n" * 9, "a\n" * 8 + "b"),
        ("\r\n", "\n"),
        ("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "0\n2\n3\n4\n5\n6\n7\n8\n0\n"),
    ],
)
def test_git_can_apply_it(one: str, other: str, tmp_path: Path, git: Callable[..., str]) -> None:
    file = tmp_path / "text"
    file.write_text(one, newline="")
    diff = diff_texts(one, other, names=("a/text", "b/text"))

    git("apply", "--unsafe-paths", "-", cwd=tmp_path, stdin=diff)

    assert file.read_bytes().decode() == other
