import re

from hypothesis import given
from hypothesis import strategies as st

from uwf_git.cli.output.screen import Screen
from uwf_git.cli.output.step_lines import StepLines
from uwf_git.cli.output.table import display_width


def lines_of(columns: int | None, **screen: bool) -> StepLines:
    return StepLines(Screen(**screen), lambda: columns)


def test_lines_line_up_and_end_in_how_long_it_took() -> None:
    lines = lines_of(50)
    lines.make_room(["developer"])
    done = lines.mark("completed")

    line = lines.format(done, "planner", "Three steps", number=1, tail="0.1 s")
    assert line.split("  ", 4)[:4] == ["✓", "1 planner", "", "Three steps"]
    assert line.endswith("   0.1 s")
    assert display_width(line) == 49
    assert lines.format(lines.again, "developer", "try 1: a\nb\x1b") == (
        "↻    developer  try 1: a b\\x1b"
    )
    assert (
        lines_of(None)
        .format(done, "a", "word " * 40, number=12, tail="2.0 s")
        .endswith("word  2.0 s")
    )


def test_colour_is_that_of_the_mark_and_ascii_where_nothing_else_is_written() -> None:
    coloured, plain = lines_of(60, has_colour=True), lines_of(60, is_utf8=False)

    assert coloured.format(coloured.mark("failed"), "a", "b").startswith("\x1b[31m✗\x1b[0m  ")
    assert plain.format(plain.again, "日", "é").isascii()


@given(st.text(), st.text(), st.integers(60, 130), st.booleans())
def test_no_line_is_wider_than_the_terminal(
    name: str,
    said: str,
    columns: int,
    is_utf8: bool,  # noqa: FBT001 (hypothesis passes it so)
) -> None:
    lines = lines_of(columns, is_utf8=is_utf8)
    lines.before = 22

    line = lines.format(lines.mark("completed"), name, said, number=100, tail="1 min 05 s")

    assert display_width(line) < columns
    assert not re.search("[\x00-\x1f\x7f-\x9f]", line)
