from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.commands.receive.ref_update import (
    MOST_INPUT_BYTES,
    RefUpdate,
    is_ours,
    ours_among,
    parse_updates,
)
from uwf_git.errors import BadUsage
from uwf_git.store.oid import Oid

A, B, ZERO = Oid("a" * 40), Oid("b" * 40), "0" * 40


def test_lines_are_read_as_git_writes_them() -> None:
    content = f"{ZERO} {A} refs/threads/x\n{A} {B} refs/heads/\xfc y\n{B} {ZERO} refs/a\n"

    assert parse_updates(content.encode()) == [
        RefUpdate("refs/threads/x", None, A),
        RefUpdate("refs/heads/\xfc y", A, B),
        RefUpdate("refs/a", B, None),
    ]


def test_name_that_is_no_text_comes_through() -> None:
    (update,) = parse_updates(f"{ZERO} {A} refs/threads/".encode() + b"\xff\n")

    assert update.name == "refs/threads/\udcff"
    assert is_ours(update.name)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("\n", "it has the line ''"),
        ("nonsense\n", "it has the line 'nonsense'"),
        (f"{A} {B} refs/a", "its last line has no newline"),
        (f"{A} {B}\n", "it has the line"),
        (f"{A} {B} HEAD\n", "it has the line"),
        (f"{A.upper()} {B} refs/a\n", "it has the line"),
        (f"{A} {B} refs/a\0b\n", "it has the line"),
        (f"{A} {B} refs/a\n{A} {B} refs/a\n", "it has one ref twice"),
        (f"{'a' * 64} {'b' * 64} refs/a\n", "it has SHA-256 object ids"),
    ],
)
def test_anything_else_is_refused(content: str, problem: str) -> None:
    with refuses("bad-hook-input", match=problem):
        parse_updates(content.encode())


def test_too_much_is_refused() -> None:
    with refuses("bad-hook-input", match="too many refs"):
        parse_updates(bytes(MOST_INPUT_BYTES + 1))


@given(content=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with suppress(BadUsage):
        assert all(update.name.startswith("refs/") for update in parse_updates(content))


@pytest.mark.parametrize(
    "name",
    [
        *("refs/threads/x", "refs/archive/x/y", "refs/workflows/x", "refs/cas/nodes"),
        *("refs/cas/other", "refs/uwf/kept/x", "refs/threads", "refs/uwf"),
        *("refs/Threads/x", "REFS/ARCHIVE/x", "refs/thread\u017f/x"),
    ],
)
def test_refs_in_our_folders_are_ours(name: str) -> None:
    assert is_ours(name)


@pytest.mark.parametrize(
    "name", ["refs/heads/main", "refs/tags/threads/x", "refs/threadsx", "refs/heads/refs/threads/x"]
)
def test_other_refs_are_not_ours(name: str) -> None:
    assert not is_ours(name)
    assert ours_among([RefUpdate(name, None, A)]) == []
