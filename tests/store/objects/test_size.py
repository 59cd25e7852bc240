import hashlib
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import Blob, ObjectID

from uwf_git.store.objects.incoming_pack import ObjectSize, find_size
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.remotes.incoming import ReceivedObjects

Git = Callable[..., str]


def _entry_head(kind: int, size: int) -> bytes:
    first, rest = kind << 4 | size & 15, size >> 4
    return bytes([first | 128]) + _number(rest) if rest else bytes([first])


def _number(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + _number(rest) if rest else bytes([low])


def _packed_as_delta(
    tmp_path: Path, git: Git, before: bytes, after: bytes, copies: bytes
) -> DurableObjects:
    """Pack a blob, and another that *copies* makes of it."""
    head = b"PACK" + (2).to_bytes(4, "big") + (2).to_bytes(4, "big")
    first = _entry_head(3, len(before)) + zlib.compress(before)
    delta = _number(len(before)) + _number(len(after)) + copies
    base = Blob.from_string(before).sha().digest()
    body = head + first + _entry_head(7, len(delta)) + base + zlib.compress(delta)
    git("init", "-q", "--bare", "in.git", cwd=tmp_path)
    git("index-pack", "--stdin", cwd=tmp_path / "in.git", stdin=body + hashlib.sha1(body).digest())
    return DurableObjects(str(tmp_path / "in.git" / "objects"))


LARGE = 3_000_000


@pytest.fixture
def repo(tmp_path: Path, git: Git) -> Path:
    """Return a repository with objects of every kind, and large ones that differ by a line."""
    path = tmp_path / "repo"
    git("init", "-q", path, cwd=tmp_path)
    lines = [f"{number:08} {os.urandom(8).hex()}\n" for number in range(LARGE // 26)]
    for version in range(3):
        lines[version * 7] = f"changed {version}\n"
        (path / "large").write_text("".join(lines))
        (path / "small").write_text(f"{version}\n" * 100)
        git("add", "-A", cwd=path)
        git("commit", "-qm", f"version {version}", cwd=path)
    git("tag", "-am", "a tag", "v1", cwd=path)
    return path


def told_by_git(repo: Path, git: Git) -> dict[ObjectID, ObjectSize]:
    """Return what git says of every object."""
    words = ("--batch-check=%(objectname) %(objecttype) %(objectsize)", "--batch-all-objects")
    rows = (line.split() for line in git("cat-file", *words, cwd=repo).splitlines())
    return {ObjectID(oid.encode()): ObjectSize(kind, int(size)) for oid, kind, size in rows}


@pytest.mark.parametrize("ofs", ["true", "false"])
def test_packed_objects_are_at_least_as_large_as_git_says(repo: Path, git: Git, ofs: str) -> None:
    git("-c", f"repack.useDeltaBaseOffset={ofs}", "gc", "-q", "--aggressive", cwd=repo)
    objects = DurableObjects(str(repo / ".git" / "objects"))
    deltas = git("verify-pack", "-v", *(repo / ".git/objects/pack").glob("*.idx"), cwd=repo)

    sizes = told_by_git(repo, git)

    assert "chain length = 1: " in deltas
    for oid, size in sizes.items():
        found = find_size(objects, oid)
        assert found is not None
        assert found.kind == size.kind
        assert size.size_bytes <= found.size_bytes <= max(size.size_bytes, LARGE + 100_000)


def test_bomb_is_measured_without_being_inflated(tmp_path: Path) -> None:
    oid = ObjectID(b"ab" + b"0" * 38)
    packer = zlib.compressobj(9)
    whole = packer.compress(b"blob 1099511627776\0") + packer.compress(bytes(50_000_000))
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / ("0" * 38)).write_bytes(whole + packer.flush())

    assert find_size(DurableObjects(str(tmp_path)), oid) == ObjectSize("blob", 2**40)


@pytest.mark.parametrize(
    "content",
    [b"", b"garbage", zlib.compress(b"blob x\0"), zlib.compress(b"blob 5"), zlib.compress(b"\0")],
)
def test_file_that_is_no_object_has_no_size(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / ("0" * 38)).write_bytes(content)

    assert find_size(DurableObjects(str(tmp_path)), ObjectID(b"ab" + b"0" * 38)) is None


def test_first_place_that_has_it_tells(repo: Path, tmp_path: Path, git: Git) -> None:
    received = ReceivedObjects([str(tmp_path / "nothing"), str(repo / ".git" / "objects")])

    sizes = told_by_git(repo, git)

    assert {oid: find_size(received, oid) for oid in sizes} == sizes
    assert find_size(received, ObjectID(b"1" * 40)) is None


def test_small_object_on_a_large_base_takes_as_much_as_the_base(tmp_path: Path, git: Git) -> None:
    # git itself uses no base that is so much larger; a hostile client may.
    large, small = b"x" * 100_000, b"x" * 50
    objects = _packed_as_delta(tmp_path, git, large, small, b"\x90" + bytes([len(small)]))

    assert objects[Blob.from_string(small).id].as_raw_string() == small
    assert find_size(objects, Blob.from_string(small).id) == ObjectSize("blob", len(large))
