"""Markers, examples and order are given by tables that fit the files that are there."""

import re
from pathlib import Path

import kinds
import pytest

HERE = Path(__file__).parent
FILES = [path.relative_to(HERE).as_posix() for path in sorted(HERE.rglob("test_*.py"))]

# Kinds of which there may be none yet.
EMPTY: set[str] = set()


@pytest.mark.parametrize(
    ("path", "fixtures", "given"),
    [
        ("model/test_node.py", (), {"quick"}),
        ("model/test_node.py", ("git",), {"process"}),
        ("store/test_power_loss.py", (), {"crash", "disk", "slow"}),
        ("commands/test_races.py", ("world",), {"race", "slow", "verb"}),
        ("interop/test_gc_races.py", ("git",), {"process", "race", "slow"}),
        ("realcli/test_claude.py", (), {"realcli", "slow"}),
        ("web/test_page.py", ("browser",), {"browser"}),
        ("test_hygiene.py", (), {"hygiene"}),
    ],
)
def test_kind_comes_from_file_and_fixtures(
    path: str, fixtures: tuple[str, ...], given: set[str]
) -> None:
    assert kinds.kinds_of(path, fixtures) == given


def test_each_kind_has_files() -> None:
    assert kinds.MARKERS.keys() - {"quick"} == kinds.FILES.keys()
    for marker in kinds.FILES.keys() - EMPTY:
        assert any(marker in kinds.kinds_of(path, ()) for path in FILES), marker


def test_each_pattern_fits_a_file() -> None:
    tables = [*kinds.FILES.items(), ("costly", kinds.COSTLY_EXAMPLES)]
    tables += [("longest", kinds.LONGEST_FIRST)]
    unused = [
        pattern
        for marker, patterns in tables
        for pattern in patterns
        if marker not in EMPTY and not any(kinds.matches(path, [pattern]) for path in FILES)
    ]

    assert unused == []


def test_crowds_begin_before_the_rest() -> None:
    ranks = [kinds.order_of(path) for path in ("commands/test_races.py", "model/test_node.py")]

    assert ranks == [0, len(kinds.LONGEST_FIRST)]


def test_no_test_is_marked_by_hand() -> None:
    by_hand = re.compile(rf"pytest\.mark\.(?:{'|'.join(kinds.MARKERS)})\b")

    assert [path for path in FILES if by_hand.search((HERE / path).read_text())] == []


def test_this_test_is_quick(request: pytest.FixtureRequest) -> None:
    assert [mark.name for mark in request.node.iter_markers()] == ["quick"]
