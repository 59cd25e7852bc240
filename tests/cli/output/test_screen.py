import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.cli.output.live import EventLines
from uwf_git.cli.output.screen import (
    MOMENT,
    Cell,
    Column,
    Moment,
    Screen,
    describe_usage,
    display_width,
    emit,
    note,
    render_columns,
    render_json,
    render_table,
    render_text,
    screen_of,
    shorten,
    tell_local,
    tell_moment,
    tell_seconds,
    tell_when,
)
from uwf_git.cli.remote import fetch_document, fetch_text
from uwf_git.cli.session import Format, Session
from uwf_git.commands.remote.fetch import Fetched
from uwf_git.commands.remote.reconcile import Reconciled
from uwf_git.commands.verify.history import Finding
from uwf_git.errors import Conflict
from uwf_git.model.names import Oid, ThreadId
from uwf_git.model.thread import STATUSES
from uwf_git.store.remotes.remotes import Remote
from uwf_git.store.store import create_store


def test_each_status_has_a_mark_of_its_own_in_ascii_too() -> None:
    for screen in (Screen(), Screen(is_utf8=False)):
        marks = [screen.mark(status).text for status in (*STATUSES, "running", "damaged", "new")]
        assert len(set(marks)) == len(marks)
    assert all(Screen(is_utf8=False).mark(status).text.isascii() for status in STATUSES)


def test_times_are_utc_unless_a_person_is_at_the_terminal(session: Session) -> None:
    text = session._replace(output_format="text")
    there = text._replace(stdout_is_tty=True)
    now_ms = session.now_ms()

    assert screen_of(text).tell_when(now_ms) == "2025-10-09 08:53:20 UTC"
    assert screen_of(there).tell_when(now_ms) == "1 s"
    assert screen_of(there._replace(is_utc=True)).tell_when(now_ms) == "2025-10-09 08:53:20 UTC"
    assert screen_of(there).tell_when(None) is None
    assert screen_of(text).tell_moment(now_ms) == "2025-10-09 08:53:20 UTC"


THREAD = "01J7K9M2XNPQR5VWBCDF8G3H4T"
EVENT: dict[str, Any] = {
    "type": "workflow:progress", "taskId": THREAD, "commit": "c", "timestamp": 1_760_000_000_000,
    "payload": {}, "event": "step", "role": "writer", "depth": 3, "status": "ready",
    "subject": "writer: Said.", "reason": None,
}  # fmt: skip
Lines = Callable[..., list[str]]


@pytest.fixture
def lines(session: Session, tmp_path: Path) -> Lines:
    """Return the lines of events, each a change of EVENT, as a person sees them."""
    there = session._replace(output_format="text", stdout_is_tty=True, environ={"COLUMNS": "80"})
    events = EventLines(there, Screen(80), create_store(str(tmp_path / "store.git")))

    def add(*changes: dict[str, Any]) -> list[str]:
        return [line for change in changes for line in events.add({**EVENT, **change})]

    return add


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"event": "attempt", "payload": {"error": "no"}}, "↻    writer    no"),
        ({"event": "attempt", "status": "failed", "reason": "x"}, "✗    writer    x"),
        (
            {"event": "pause", "status": "paused", "role": None, "subject": "paused"},
            "‖              paused",
        ),
    ],
)
def test_other_events_have_the_mark_of_the_status(
    change: dict[str, Any], told: str, lines: Lines
) -> None:
    assert lines(change) == [f"08:53:20  {THREAD[:10]}  {told}"]


def test_event_beyond_the_calendar_is_told_with_a_number(lines: Lines) -> None:
    beyond = f"{10**15} ms after 1970"

    day, line = lines({"timestamp": 10**15})

    assert (day, line[: len(beyond)]) == (beyond, beyond)


TEXTS = st.text(st.characters())
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
FINITE = SCALARS.filter(lambda value: value not in {float("inf"), float("-inf")})
VALUES = st.recursive(FINITE, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner))


@given(value=VALUES, pretty=st.booleans(), ascii_only=st.booleans())
def test_every_value_reads_back(value: Any, *, pretty: bool, ascii_only: bool) -> None:
    text = render_json(value, pretty=pretty, ascii_only=ascii_only)

    # Two adjacent halves of a surrogate pair become one character in any JSON.
    assert json.loads(text) == json.loads(json.dumps(value))
    assert text.encode("ascii" if ascii_only else "utf-8").strip()
    assert text.endswith("\n")
    assert pretty or text.count("\n") == 1


def test_text_is_written_as_it_is_in_utf8_and_as_escapes_elsewhere() -> None:
    assert render_json({"é": "日本"}) == '{"é":"日本"}\n'
    assert render_json("é", ascii_only=True) == '"\\u00e9"\n'


def test_controls_that_json_allows_are_escaped_all_the_same() -> None:
    assert render_json("\x1b\x7f\x9b\ud800") == '"\\u001b\\u007f\\u009b\\ud800"\n'


@pytest.mark.parametrize("mark", "\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069")
def test_marks_of_direction_are_escaped(mark: str) -> None:
    assert render_json({mark: mark}) == f'{{"\\u{ord(mark):04x}":"\\u{ord(mark):04x}"}}\n'


NOW = 1_763_822_000_000  # 2025-11-22 14:33:20 UTC
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("ago_ms", "told"),
    [
        (0, "0 s"),
        (-5_000, "0 s"),
        (43_999, "43 s"),
        (24 * 60_000, "24 min"),
        (3 * HOUR, "3 h"),
        (13 * HOUR, "01:33"),
        (24 * HOUR, "yesterday 14:33"),
        (19 * 24 * HOUR, "3 Nov 14:33"),
        (400 * 24 * HOUR, "2024-10-18"),
        (-30 * 24 * HOUR, "2025-12-22"),
    ],
)
def test_time_is_told_as_people_tell_it(ago_ms: int, told: str) -> None:
    assert tell_when(NOW - ago_ms, NOW) == told


def test_times_are_those_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-09:00")
    time.tzset()
    try:
        assert tell_local(NOW) == "2025-11-22 23:33:20"
        assert tell_when(NOW - 24 * HOUR, NOW) == "yesterday 23:33"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_time_beyond_the_calendar_is_a_number() -> None:
    for tell in (lambda ms: tell_when(ms, NOW), tell_local):
        assert tell(10**18) == "1000000000000000000 ms after 1970"


def test_moment_of_today_says_how_long_ago() -> None:
    assert tell_moment(NOW - 60_000, NOW) == "2025-11-22 14:32:20, 1 min ago"
    assert tell_moment(NOW - 24 * HOUR, NOW) == "2025-11-21 14:33:20"


@pytest.mark.parametrize(
    ("seconds", "told"), [(59, "59 s"), (60, "1 min"), (7200, "2 h"), (172_800, "2 d")]
)
def test_duration_is_told_in_its_largest_unit(seconds: int, told: str) -> None:
    assert tell_seconds(seconds) == told


@pytest.mark.parametrize(
    ("form", "is_utf8", "printed"),
    [
        ("json", True, '{"name":"é\\u001b","tags":["a","b"]}\n'),
        ("json", False, '{"name":"\\u00e9\\u001b","tags":["a","b"]}\n'),
        ("yaml", True, 'name: "é\\u001b"\ntags:\n  - a\n  - b\n'),
        ("yaml", False, 'name: "\\u00e9\\u001b"\ntags:\n  - a\n  - b\n'),
        ("text", True, "name: é\\x1b\ntags:\n  a\n  b\n"),
    ],
)
def test_document_is_printed_in_the_format_of_the_session(
    form: Format,
    *,
    is_utf8: bool,
    printed: str,
    session: Session,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("uwf_git.cli.output.screen.stdout_is_utf8", lambda: is_utf8)

    emit(session._replace(output_format=form), {"name": "é\x1b", "tags": ["a", "b"]})

    assert capsys.readouterr() == (printed, "")


def test_note_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    note("step 1\nof \x1b[31m2")

    assert capsys.readouterr() == ("", "step 1 of \\x1b[31m2\n")


@pytest.mark.parametrize(
    ("environ", "shown"),
    [({}, b"a: 1\n"), ({"UWF_THREAD_ID": "01J"}, b'{\n  "a": 1\n}\n')],
    ids=["person", "agent"],
)
def test_terminal_is_noticed(
    environ: dict[str, str], shown: bytes, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    ours, theirs = os.openpty()
    with start("cli.demo", "show", '{"a": 1}', stdout=theirs, env=environ) as process:
        os.close(theirs)
        printed = b""
        with suppress(OSError):  # nobody has the other side any more
            while chunk := os.read(ours, 1000):
                printed += chunk
    os.close(ours)

    assert process.returncode == 0
    assert printed.replace(b"\r\n", b"\n") == shown


@pytest.mark.parametrize(
    ("usage", "exact", "short"),
    [
        ({}, [], []),
        (
            {"inputTokens": 146_451, "outputTokens": 872, "costUsd": 0.5861},
            ["146,451 tokens in, 872 out", "0.5861 USD"],
            ["146k tokens in, 872 out", "0.59 USD"],
        ),
        ({"outputTokens": 2_500_000}, ["2,500,000 out"], ["2.5M out"]),
        ({"inputTokens": "many", "costUsd": True}, [], []),
    ],
)
def test_usage_is_told_as_far_as_it_was_reported(
    usage: dict[str, object], exact: list[str], short: list[str]
) -> None:
    assert describe_usage(usage) == exact
    assert describe_usage(usage, short=True) == short


NOW_MS = 1_800_000_000_000
DAY_MS = 24 * 3600 * 1000


def read(text: str) -> Moment:
    return MOMENT.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "ago_ms"),
    [
        ("0s", 0),
        ("30m", 30 * 60_000),
        ("12h", DAY_MS // 2),
        ("7d", 7 * DAY_MS),
        (" 2w ", 14 * DAY_MS),
    ],
)
def test_span_is_counted_back_from_now(text: str, ago_ms: int) -> None:
    assert read(text).at(NOW_MS) == NOW_MS - ago_ms


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2026-11-01", "2026-11-01T00:00:00+00:00"),
        ("2026-11-01T12:30", "2026-11-01T12:30:00+00:00"),
        ("2026-11-01 12:30:15", "2026-11-01T12:30:15+00:00"),
        ("2026-11-01T12:30Z", "2026-11-01T12:30:00+00:00"),
        ("2026-11-01T12:30+02:00", "2026-11-01T10:30:00+00:00"),
    ],
)
def test_time_is_in_utc_unless_it_says_otherwise(text: str, told: str) -> None:
    assert datetime.fromtimestamp(read(text).at(NOW_MS) / 1000, tz=UTC).isoformat() == told


@pytest.mark.parametrize(
    "text",
    ["", "7", "d", "-7d", "1.5d", "7x", "7D", "7d3h", "yesterday", "2026", "20261101", "2026-13-01",
     "2026-02-30", "2026-11-01T25:00", "2026-11-01x", "01/11/2026", "\u0667d", "9" * 400 + "d"],
)  # fmt: skip
def test_invalid_time_is_reported_with_valid_forms(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is no time: type how long ago \(30m"):
        read(text)


def test_nothing_was_before_1970() -> None:
    assert read("999999999w").at(NOW_MS) == 0
    assert read("0001-01-01").at(NOW_MS) == 0


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1)))  # noqa: DTZ001 (hypothesis wants them so)
def test_every_iso_time_is_read(time: datetime) -> None:
    known = time.replace(tzinfo=UTC)
    assert abs(read(time.isoformat()).at(NOW_MS) - known.timestamp() * 1000) <= 1


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


KEYS = st.sampled_from(["id", "startTime", "a\nb", "日本"])
SCALARS_TABLE = st.none() | st.booleans() | st.integers() | st.text(st.characters())
VALUES_TABLE = st.recursive(
    SCALARS_TABLE, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)
)


def test_document_for_people() -> None:
    cases: list[tuple[Any, str]] = [
        (None, ""),
        ([], ""),
        ({}, ""),
        (True, "yes\n"),
        (False, "no\n"),
        (12, "12\n"),
        (1.5, "1.5\n"),
        ("two\nlines\n", "two\nlines\n"),
        ("", "\n"),
        (["a", None, True, []], "a\n-\nyes\n-\n"),
        ([["a", "b"], "c", ["d"]], "- a\n  b\n- c\n- d\n"),
        ([{"a": 1}, "c"], "- a: 1\n- c\n"),
    ]
    for document, text in cases:
        assert render_text(document) == text


def test_too_deep_value_is_one_line_of_json() -> None:
    deep: Any = "x"
    for _ in range(400):
        deep = {"k": deep}

    text = render_text(deep)

    assert text.count("\n") == 13
    assert '{"k":{"k":' in text


@given(VALUES_TABLE, st.none() | st.integers(1, 100))
def test_anything_renders_without_controls_and_without_words_of_python(
    document: Any, width: int | None
) -> None:
    text = render_text(document, width=width)

    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", text)
    assert text == "" or text.endswith("\n")


@given(st.lists(st.dictionaries(KEYS, st.none() | st.booleans(), min_size=1), min_size=1))
def test_nothing_and_truth_never_show_as_python_spells_them(rows: list[dict[str, Any]]) -> None:
    assert not re.search("None|True|False|undefined|null|true|false", render_text(rows))


@given(st.lists(st.dictionaries(KEYS, SCALARS_TABLE, min_size=1), min_size=1), st.integers(1, 99))
def test_every_row_is_one_line(rows: list[dict[str, Any]], width: int) -> None:
    assert len(render_table(rows, width=width)) == len(rows) + 1


def test_width_is_in_columns() -> None:
    widths = {
        0: [""],
        1: ["é", "e\u0301", "ｱ"],
        2: ["\uff21", "👍", "👍🏽", "👨‍👩‍👧", "👨‍💻", "❤️", "🇩🇪", "n\u0303o"],
        3: ["abc"],
        4: ["日本"],
    }
    for width, texts in widths.items():
        assert [display_width(text) for text in texts] == [width] * len(texts)


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("abc", 1, "…"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
        ("👨‍💻👨‍💻", 3, "👨‍💻…"),
        ("a👨‍💻b", 3, "a…"),
    ],
)
def test_text_is_shortened_between_characters(text: str, width: int, short: str) -> None:
    assert shorten(text, width) == short


def test_width_of_ascii_imports_no_tables() -> None:
    program = "import sys; from uwf_git.cli.output.screen import shorten; shorten('a' * 9, 5)"
    check = "assert 'wcwidth' not in sys.modules"
    subprocess.run([sys.executable, "-c", f"{program}; {check}"], check=True)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])), st.integers(1, 20))
def test_short_text_fits_and_begins_as_the_long_one(text: str, width: int) -> None:
    short = shorten(text, width)

    assert display_width(short) <= width
    assert short == text or text.startswith(short.removesuffix("…"))


A, B = Oid("a" * 40), Oid("b" * 40)
FETCHED = Fetched(
    Remote("origin", "https://me:secret@host/x"),
    [
        Reconciled("created", "refs/threads/1", None, A),
        Reconciled("diverged", "refs/workflows/demo", A, B),
        Reconciled("refused", "refs/threads/2", None, B, Finding("it is no thread", "x")),
    ],
    [(ThreadId("3"), Conflict("thread 3 is busy", hint="try again"))],
    ["refs/threads/main"],
    7,
)


def test_everything_has_a_line() -> None:
    assert fetch_text(fetch_document(FETCHED)).splitlines() == [
        "created   refs/threads/1",
        f"diverged  refs/workflows/demo: here {A}, there {B}",
        "refused   refs/threads/2: it is no thread",
        "busy      thread 3 is busy",
        "ignored   refs/threads/main",
        "7 unchanged",
    ]
