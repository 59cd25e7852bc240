import re

from hypothesis import given
from hypothesis import strategies as st

from uwf_git.cli.output.live import StepLines
from uwf_git.cli.output.screen import Screen, display_width


def lines_of(columns: int | None, **screen: bool) -> StepLines:
    return StepLines(Screen(**screen), lambda: columns)


def test_colour_is_that_of_the_mark_and_ascii_where_nothing_else_is_written() -> None:
    coloured, plain = lines_of(60, has_colour=True), lines_of(60, is_utf8=False)

    assert coloured.format(coloured.screen.mark("failed"), "a", "b").startswith(
        "\x1b[31m✗\x1b[0m  "
    )
    assert plain.format(plain.screen.mark("again"), "日", "é").isascii()


@given(st.text(), st.text(), st.integers(60, 130), st.booleans())
def test_no_line_is_wider_than_the_terminal(
    name: str,
    said: str,
    columns: int,
    is_utf8: bool,  # noqa: FBT001 (hypothesis passes it so)
) -> None:
    lines = lines_of(columns, is_utf8=is_utf8)
    lines.before = 22

    line = lines.format(lines.screen.mark("completed"), name, said, number=100, tail="1 min 05 s")

    assert display_width(line) < columns
    assert not re.search("[\x00-\x1f\x7f-\x9f]", line)
