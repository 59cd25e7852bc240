from hypothesis import given
from hypothesis import strategies as st

from uwf_git.cli.output.screen import Screen, Styled
from uwf_git.cli.output.table import Cell, Column, display_width, render_columns

COLUMNS = (
    Column("id", "ID"),
    Column("empty", "EMPTY", 1),
    Column("task", "TASK", 2, least=8),
    Column("path", "PATH", 3, least=10),
)
ROW = {"id": "01J7K9M2XN", "task": "fix the login", "path": "/a/long/path/to/it", "empty": None}


def test_columns_are_left_out_before_words_are_cut() -> None:
    def shown(width: int | None, *, wide: bool = False) -> list[str]:
        return render_columns([ROW], COLUMNS, Screen(width), wide=wide)

    assert shown(None) == [
        "ID          EMPTY  TASK           PATH",
        "01J7K9M2XN  -      fix the login  /a/long/path/to/it",
    ]
    assert shown(45) == [
        "ID          TASK           PATH",
        "01J7K9M2XN  fix the login  /a/long/path/to/it",
    ]
    assert shown(36) == ["ID          TASK         PATH", "01J7K9M2XN  fix the lo…  /a/long/pa…"]
    assert shown(25) == ["ID          TASK", "01J7K9M2XN  fix the login"]
    assert shown(20) == ["ID          TASK", "01J7K9M2XN  fix the…"]
    assert shown(12) == ["ID", "01J7K9M2XN"]
    assert shown(5) == ["ID", "01J7K9M2XN"]
    assert shown(20, wide=True) == shown(None)


def test_colours_take_no_room_and_stand_where_the_text_is() -> None:
    rows: list[dict[str, Cell]] = [
        {"id": Styled("● a", "green"), "task": "b"},
        {"id": "cc\x1b", "task": "d"},
    ]

    lines = render_columns(rows, COLUMNS[:1] + COLUMNS[2:3], Screen(80, has_colour=True))

    assert lines == [
        "\x1b[1mID\x1b[0m      \x1b[1mTASK\x1b[0m",
        "\x1b[32m● a\x1b[0m     b",
        "cc\\x1b  d",
    ]


def test_stream_that_is_not_utf8_gets_ascii_of_the_same_width() -> None:
    screen = Screen(24, is_utf8=False)
    rows: list[dict[str, Cell]] = [{"id": screen.name_status("killed"), "task": "日本 and more"}]

    lines = render_columns(rows, COLUMNS[:1] + COLUMNS[2:3], screen)

    assert lines == ["ID        TASK", "x killed  \\u65e5\\u672c ~"]
    assert all(line.isascii() for line in lines)


CELLS = st.none() | st.text(max_size=60) | st.sampled_from(["日本語" * 9, "01J7K9M2XN"])


ROWS = st.lists(st.fixed_dictionaries(dict.fromkeys(("empty", "task", "path"), CELLS)), min_size=1)


@given(rows=ROWS, width=st.integers(24, 120))
def test_any_table_fits_and_never_cuts_an_id(rows: list[dict[str, str | None]], width: int) -> None:
    cells = [{"id": f"01J7K9M2X{number % 10}", **row} for number, row in enumerate(rows)]

    lines = render_columns(cells, COLUMNS, Screen(width))

    assert max(map(display_width, lines)) <= width
    assert [line.split()[0] for line in lines[1:]] == [row["id"] for row in cells]
