"""We read packed-refs as git reads it."""

import hashlib
import os
import random
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from uwf_git.errors import StoreDamaged
from uwf_git.model.names import Oid
from uwf_git.store.refs import BadPackedRefs, PackedRefs, Refs, list_bad_files, list_refs
from uwf_git.store.store import Store

A, B, C = (Oid(digit * 40) for digit in "abc")


def test_loose_refs_come_before_packed_ones(store: Store) -> None:
    Path(store.path, "packed-refs").write_text(
        "# pack-refs with: peeled fully-peeled sorted \n"
        f"{A} refs/threads/both\n{B} refs/threads/packed\n^{C}\n{C} refs/threadsx/other\n"
    )
    assert store.refs.create("refs/threads/loose", C)
    assert store.refs.advance("refs/threads/both", seen=A, to=B)
    assert list_refs(store.path, "refs/threads/") == {"both": B, "loose": C, "packed": B}


@pytest.mark.parametrize("content", ["", "garbage\n", f"{A[:30]}\n", "\0" * 41])
def test_a_broken_file_does_not_let_an_older_packed_value_through(
    store: Store, content: str
) -> None:
    Path(store.path, "packed-refs").write_text(f"{A} refs/threads/x\n{B} refs/threads/y\n")
    Path(store.path, "refs", "threads").mkdir()
    Path(store.path, "refs", "threads", "x").write_text(content)
    assert list_refs(store.path, "refs/threads/") == {"y": B}
    assert list_bad_files(store.path, "refs/threads/") == ["refs/threads/x"]


@pytest.mark.parametrize("line", ["garbage", "", f"{A}", f"{A[:39]} refs/threads/z", f"^{A}\n^{A}"])
def test_a_line_that_is_no_row_hides_no_ref(store: Store, line: str) -> None:
    rows = f"{A} refs/threads/x\n{line}\n{B} refs/threads/y\n"
    for header in ("", "# pack-refs with: peeled fully-peeled sorted \n"):
        Path(store.path, "packed-refs").write_text(header + rows)
        with pytest.raises(BadPackedRefs, match="names no ref"):
            list_refs(store.path, "refs/threads/")
        with pytest.raises(BadPackedRefs, match="names no ref"):
            store.refs.names("refs/threads/")


SORTED = b"# pack-refs with: peeled fully-peeled sorted \n"
HEADERS = [b"", SORTED, b"# pack-refs with: peeled \n", SORTED.replace(b"\n", b"\r\n")]
PREFIXES = ["refs/heads/", "refs/threads/", "refs/threads0/", "refs/archive/"]
NAMES = [prefix + name for prefix in PREFIXES for name in ("A", "AB", "B", "Z", "é", "a/b")]
CONTENTS = [b"one", b"two"]
ALL_ROWS = re.compile(rb"(#[^\n]*\n)?([0-9a-f]{40} [^\n]+\n(\^[0-9a-f]{40}\n)?)*")
ONE, TWO = (hashlib.sha1(b"blob 3\0" + each).hexdigest().encode() for each in CONTENTS)


class Asked:
    """A repository whose packed-refs is written anew for each question."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._git("init", "--quiet", "--bare", ".")
        made = [self._git("hash-object", "-w", "--stdin", fed=each) for each in CONTENTS]
        assert made == [ONE, TWO]

    def write(self, content: bytes) -> Refs:
        (self.path / "packed-refs").write_bytes(content)
        return Refs(str(self.path), durable=False)

    def find_with_git(self, names: Sequence[str]) -> list[str | None] | None:
        """Return what git finds under each name; None if it does not get on with the file."""
        told = self._git("cat-file", "--batch-check", fed="\n".join(names).encode())
        if told is None:
            return None
        answers = [line.decode().split() for line in told.splitlines()]
        return [None if kind == "missing" else oid for oid, kind, *_size in answers]

    def list_with_git(self, prefix: str) -> list[str] | None:
        told = self._git("for-each-ref", "--format=%(refname)", prefix)
        return None if told is None else [name[len(prefix) :] for name in told.decode().split()]

    def _git(self, *words: str, fed: bytes = b"") -> bytes | None:
        ran = subprocess.run(
            ["git", *words], cwd=self.path, input=fed, capture_output=True, check=False
        )
        return ran.stdout.strip() if ran.returncode == 0 else None


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Return one repository to all examples: each writes the whole file that it asks about."""
    return Asked(tmp_path_factory.mktemp("repository"))


def line(name: str, oid: bytes = ONE) -> bytes:
    return b"%s %s\n" % (oid, os.fsencode(name))


def odd_lines(name: str) -> list[bytes]:
    plain = line(name)
    return [
        plain.replace(b"\n", b"\r\n"),
        plain.replace(b" ", b"\t"),
        plain.replace(b" ", b"  "),
        ONE.upper() + plain[40:],
        b"x" * 40 + plain[40:],
        plain.replace(b"\n", b"\n\n"),
        b"# a comment\n" + plain,
        b"^%s\n" % TWO + plain,
    ]


def lines(name: str) -> st.SearchStrategy[bytes]:
    usual = st.sampled_from([line(name), line(name, TWO), line(name) + b"^%s\n" % TWO])
    return st.integers(0, 7).flatmap(
        lambda number: usual if number else st.sampled_from(odd_lines(name))
    )


@st.composite
def files(draw: st.DrawFn, *, lies: bool) -> bytes:
    """Draw a file; if it *lies*, its names may be in another order than it says."""
    header = draw(st.sampled_from(HEADERS))
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=12))
    if not lies and b"sorted" in header:
        names.sort(key=os.fsencode)
    content = b"".join([header, *(draw(lines(name)) for name in names)])
    is_cut = draw(st.integers(0, 9)) == 0
    return content[: draw(st.integers(0, len(content)))] if is_cut else content


@settings(max_examples=150)
@given(content=files(lies=True))
def test_every_name_that_git_finds_is_found_and_no_other(asked: Asked, content: bytes) -> None:
    refs = asked.write(content)
    try:
        ours = [refs.find(name) for name in NAMES]
    except StoreDamaged:
        return
    theirs = asked.find_with_git(NAMES)
    assume(theirs is not None)
    assert ours == theirs


@settings(max_examples=100)
@given(content=files(lies=False), prefix=st.sampled_from(PREFIXES))
def test_what_git_lists_is_listed(asked: Asked, content: bytes, prefix: str) -> None:
    refs = asked.write(content)
    theirs = asked.list_with_git(prefix)
    assume(theirs is not None)
    try:
        ours = refs.names(prefix)
    except BadPackedRefs:
        # A broken line anywhere; git looks at some of the lines only.
        assert ALL_ROWS.fullmatch(content) is None
        return
    assert ours == theirs


@settings(max_examples=100)
@given(content=files(lies=True))
def test_a_file_that_git_can_read_is_never_called_damaged(asked: Asked, content: bytes) -> None:
    refs = asked.write(content)
    assume(asked.find_with_git(NAMES) is not None)
    for name in NAMES:
        refs.find(name)


def test_each_of_many_names_is_found_and_no_name_between_them(asked: Asked) -> None:
    chance = random.Random(7)
    drawn = {"".join(chance.choices("AZ/e", k=chance.randint(0, 30))) for _ in range(3000)}
    names = sorted(f"refs/threads/{name}z" for name in drawn)
    oids = {name: hashlib.sha1(name.encode()).hexdigest() for name in names}
    records = [
        line(name, oids[name].encode()) + (b"^%s\n" % ONE if chance.random() < 0.3 else b"")
        for name in names
    ]
    asked.write(SORTED + b"".join(records))
    packed = PackedRefs(str(asked.path / "packed-refs"))
    for name in names:
        assert packed.find(name) == oids[name].encode()
        assert packed.find(f"{name}!") is None
        assert packed.find(name[:-1]) == (oids[name[:-1]].encode() if name[:-1] in oids else None)
    assert packed.names("refs/threads/") == [name.removeprefix("refs/threads/") for name in names]
    assert packed.names("refs/threads/A/") == [
        name.removeprefix("refs/threads/A/") for name in names if name.startswith("refs/threads/A/")
    ]


@pytest.mark.parametrize(
    "content",
    [
        SORTED[:-1],
        SORTED + line(NAMES[0])[:-1],
        line(NAMES[0]) + ONE,
        SORTED + ONE + b"\n",
        line(NAMES[0]) + b"\n",
        b"# a comment\n" + line(NAMES[0]),
    ],
)
def test_a_file_that_git_gives_up_on_is_damage(asked: Asked, content: bytes) -> None:
    refs = asked.write(content)
    assert asked.find_with_git(NAMES[:1]) is None
    with pytest.raises(BadPackedRefs, match="packed-refs") as caught:
        refs.find(NAMES[0])
    assert caught.value.exit_status == 5
    assert caught.value.hint
    with pytest.raises(BadPackedRefs):
        refs.names("refs/heads/")
