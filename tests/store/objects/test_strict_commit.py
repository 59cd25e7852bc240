"""Violations of git's rules and FORMAT.md's in a commit, compared with git's own check."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import ObjectID
from refusing import refuses
from store.story import Story, put_raw

from uwf_git.model.names import Oid
from uwf_git.store.objects.strict import read_strict_commit
from uwf_git.store.store import Store

Git = Callable[..., str]


@pytest.fixture
def content(store: Store, clock: Callable[[], int]) -> bytes:
    """Return a commit as it should be."""
    head = Story(store, clock).step(body="Because.\n\n\nTwice.")
    return store.objects.get_raw(ObjectID(head.commit.encode()))[1]


def problem_of(store: Store, content: bytes) -> str | None:
    oid = Oid(put_raw(store, "commit", content).decode())
    return read_strict_commit(store.objects, oid).problem


def git_takes(git: Git, store: Store, content: bytes) -> bool:
    """Check whether git accepts the commit in a push."""
    oid = put_raw(store, "commit", content).decode()
    path = Path(store.path)
    try:
        git("-c", "fsck.nulInCommit=error", "fsck", "--strict", oid, cwd=path)
    except subprocess.CalledProcessError:
        return False
    return True


COMMITTER = b"committer C O Mitter <committer@example.com> "

HEADERS = [
    (b"author writer <", b"author <", True),
    (b"author writer <", b"author  <", False),
    (b"author writer <", b"author a> <", True),
    (b"author writer <", b"author a<b> <", True),
    (b"author writer <", b"author wri\0ter <", True),
    (b"author writer <", b"author \xff\xc3\xbc 'a' <", False),
    (b"<uwf-mock@uwf>", b"<>", False),
    (b"<uwf-mock@uwf>", b"<a b --c>", False),
    (COMMITTER, b"committer <a@b> ", True),
    (COMMITTER, COMMITTER + b"0", True),
    (COMMITTER, b"committer  <> ", False),
]


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: header[1].decode(errors="replace"))
def test_identities_are_refused_as_git_refuses_them(
    header: tuple[bytes, bytes, bool], store: Store, content: bytes, git: Git
) -> None:
    old, new, refused = header
    assert content.count(old) == 1
    changed = content.replace(old, new)

    problem = problem_of(store, changed)

    assert (problem is not None) == refused == (not git_takes(git, store, changed))
    if problem is not None:
        assert problem.startswith(("has an identity that git refuses as ", "is no commit that"))


def test_line_that_git_may_read_as_something_else_is_reported(store: Store, content: bytes) -> None:
    for old, new in [
        (b"\n\n    Because.", b"\n\nUwf-Status: completed\n\n    Because."),
        (b"\n\n    Because.", b"\n\n# ------------------------ >8 ------------------------\n    B"),
        (b"\n\n    Because.", b"\n\n    a\0b"),
        (b"\n\n    Because.", b"\n\n---\n    B"),
        (b"\n\n    Because.", b"\n    Because."),
        (b"    Twice.", b"   Twice."),
        (b"Uwf-Depth: ", b"Uwf-Depth:"),
    ]:
        assert content.count(old) == 1

        problem = problem_of(store, content.replace(old, new))

        assert (
            problem == "has a line between subject and trailers that git may read as something else"
        )


def test_first_of_several_problems_is_reported(store: Store, content: bytes) -> None:
    changes = [
        (b"    Twice.", b"Twice.", "has a line between"),
        (COMMITTER, COMMITTER + b"9", "has the date"),
        (b"\n\n", b"\nencoding latin-1\n\n", "declares another encoding"),
        (b"author writer <", b"author <", "has an identity"),
    ]
    for old, new, problem in changes:
        content = content.replace(old, new, 1)
        assert str(problem_of(store, content)).startswith(problem)


SIGNATURE = b"\ngpgsig -----BEGIN\n \n abc\n -----END"


@pytest.mark.parametrize("more", [b"", SIGNATURE])
def test_signature_is_no_problem(store: Store, content: bytes, more: bytes) -> None:
    headers, blank, message = content.partition(b"\n\n")

    assert problem_of(store, headers + more + blank + message) is None


@pytest.mark.parametrize(
    "more",
    [
        b"\nx-other 1",
        SIGNATURE + b"\nHG:rename a",
        b"\n continued",
        b"\ngpgsigx 1",
        SIGNATURE * 2,
        SIGNATURE + b"\ngpgsig-sha256 abc\n def",
        b"\ngpgsig-sha256 abc",
    ],
)
def test_header_that_uwf_never_writes_is_reported(
    store: Store, content: bytes, more: bytes
) -> None:
    headers, blank, message = content.partition(b"\n\n")

    problem = problem_of(store, headers + more + blank + message)

    assert problem is not None
    assert problem.startswith("has a header that uwf never writes: ")


@pytest.mark.parametrize("odd", [b"\xff", b"\xc3", b"\xed\xa0\x80"])
@pytest.mark.parametrize("place", [b"Because.", b"writer: "])
def test_message_that_is_not_utf_8_is_reported(
    store: Store, content: bytes, odd: bytes, place: bytes
) -> None:
    assert content.count(place) == 1

    problem = problem_of(store, content.replace(place, place + odd))

    assert problem == "has a message that is not UTF-8"


def test_date_that_git_stumbles_over_is_reported(store: Store, content: bytes) -> None:
    def dated(date_s: int) -> bytes:
        changed = re.sub(rb"(committer [^\n]*> )[0-9]+", rb"\g<1>%d" % date_s, content)
        return re.sub(rb"parent [^\n]*\n", b"", changed)

    latest, later = dated((1 << 34) - 1), dated(1 << 34)

    assert problem_of(store, latest) is None
    assert problem_of(store, later) == (
        "has the date 17179869184, which git's commit-graph cannot hold"
    )
    assert problem_of(store, content.replace(b"+0000", b"+0200", 1)) == (
        "has a date that is not in UTC (+0000)"
    )


@pytest.mark.parametrize("content", [b"", b"tree 1\n", b"author me\n\nhello\n"])
def test_what_is_no_commit_is_damaged(content: bytes, store: Store) -> None:
    with refuses("damaged-commit"):
        problem_of(store, content)
    with refuses("damaged-commit", match="is missing"):
        read_strict_commit(store.objects, Oid("1" * 40))
