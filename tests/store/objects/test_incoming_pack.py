import hashlib
import os
import random
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.errors import ApplyDeltaError
from dulwich.objects import Blob, ObjectID
from interop.bombs import (
    BLOB,
    COMMIT,
    MIB,
    OFS_DELTA,
    REF_DELTA,
    TREE,
    Entry,
    deep_chain,
    delta_bomb,
    insert,
    large_chain,
    many_large,
    name_of,
    pack,
)
from refusing import refuses
from store.story import put_raw

from uwf_git.errors import Refused
from uwf_git.store.objects.incoming_pack import (
    FindBase,
    IncomingPack,
    LimitedObjects,
    ObjectSize,
    PackLimits,
    count_objects,
    find_size,
)
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.objects.pack_file import LONGEST_CHAIN
from uwf_git.store.remotes.incoming import ReceivedObjects
from uwf_git.store.store import Store, open_store

Git = Callable[..., str]


def nothing(_name: bytes) -> tuple[int, bytes]:
    raise KeyError


def index(
    place: Path, content: bytes, limits: PackLimits | None = None, find_base: FindBase = nothing
) -> Path:
    """Index a pack, and return its path; the index lies beside it."""
    path = place / "received.pack"
    path.write_bytes(content)
    with open(path, "r+b") as file:
        pack = IncomingPack(file, limits or PackLimits(), find_base)
        checksum = pack.index(str(path.with_suffix(".idx")))
    assert checksum == path.read_bytes()[-20:]
    return path


def repository(place: Path, git: Git) -> Path:
    """Make a repository whose files grow, so that git stores most of them as deltas."""
    git("init", "-q", "repository", cwd=place)
    path = place / "repository"
    source = random.Random(1)
    lines = [f"{source.random()}\n" for _line in range(300)]
    for version in range(12):
        lines[source.randrange(300)] = f"version {version}\n"
        (path / "file").write_text("".join(lines))
        (path / f"other-{version}").write_text(f"{version}\n" * version)
        git("add", ".", cwd=path)
        git("commit", "-q", "-m", f"version {version}", cwd=path)
    git("gc", "-q", cwd=path)
    return path


def test_index_is_the_one_that_git_writes(tmp_path: Path, git: Git) -> None:
    (made,) = (repository(tmp_path, git) / ".git" / "objects" / "pack").glob("*.pack")

    path = index(tmp_path, made.read_bytes())

    assert path.read_bytes() == made.read_bytes()
    assert path.with_suffix(".idx").read_bytes() == made.with_suffix(".idx").read_bytes()


def test_thin_pack_is_completed_so_that_git_finds_it_whole(tmp_path: Path, git: Git) -> None:
    source = repository(tmp_path, git)
    command = ["pack-objects", "--thin", "--stdout", "--revs", "--delta-base-offset"]
    thin = tmp_path / "thin.pack"
    git("config", "alias.make", f"!git {' '.join(command)} > {thin}", cwd=source)
    git("make", cwd=source, stdin="HEAD\n^HEAD~1\n")
    objects, asked = open_store(str(source)).objects, []

    def find_base(name: bytes) -> tuple[int, bytes]:
        asked.append(name.hex())
        return objects.get_raw(ObjectID(name.hex().encode()))

    path = index(tmp_path, thin.read_bytes(), find_base=find_base)

    assert asked
    assert git("verify-pack", path.with_suffix(".idx"), cwd=tmp_path) == ""
    assert git("index-pack", "-o", tmp_path / "git.idx", path, cwd=tmp_path)
    assert (tmp_path / "git.idx").read_bytes() == path.with_suffix(".idx").read_bytes()


def test_base_may_come_after_its_deltas(tmp_path: Path, git: Git) -> None:
    base, middle = b"the base", b"the middle"
    entries = [
        Entry(REF_DELTA, insert(len(middle), b"the end"), name_of("blob", middle)),
        Entry(OFS_DELTA, insert(7, b"on top of the end"), 1),
        Entry(REF_DELTA, insert(len(base), middle), name_of("blob", base)),
        Entry(BLOB, base),
    ]

    path = index(tmp_path, pack(entries))

    shown = git("verify-pack", "-v", path.with_suffix(".idx"), cwd=tmp_path)
    for content in (base, middle, b"the end", b"on top of the end"):
        assert f"{name_of('blob', content).hex()} blob" in shown


LIMITS = PackLimits(most_blob_bytes=MIB, most_objects=10, most_bytes=3 * MIB)

TOO_LARGE = {
    "a blob": (pack([Entry(BLOB, b"", claimed=5 * 1024**3)]), "a blob of 5g, and at most 1m"),
    "a delta": (delta_bomb(), "a tree of 4g, and at most 4m"),
    "a message": (pack([Entry(COMMIT, b"x" * (MIB + 1))]), "a commit of 2m, and at most 1m"),
    "a tree": (pack([Entry(TREE, b"x" * (4 * MIB + 1))]), "a tree of 5m, and at most 4m"),
    "objects": (pack([], count=2**32 - 1), "4294967295 objects, and at most 10 are"),
    "all of them": (pack([Entry(BLOB, b"\0" * MIB)] * 4), "that unfolds to 4m, and at most 3m"),
    "a delta of a commit": (
        pack([Entry(COMMIT, b"x" * MIB), Entry(OFS_DELTA, insert(MIB, b"y"), 1)] * 6),
        "12 objects",
    ),
}


@pytest.mark.parametrize(("content", "told"), TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_what_is_beyond_the_limits_is_told(content: bytes, told: str, tmp_path: Path) -> None:
    with refuses("transfer-too-large", match=told) as refused:
        index(tmp_path, content, LIMITS)
    assert "nothing was kept" in refused.value.message
    assert "\n" not in refused.value.message


def test_chain_of_deltas_may_be_as_long_as_git_writes_it(tmp_path: Path) -> None:
    index(tmp_path, deep_chain(4095))
    with refuses("transfer-too-large", match="a chain of 4096 deltas, and at most 4095"):
        index(tmp_path, deep_chain(4096))


@pytest.mark.parametrize("content", [delta_bomb(), many_large()], ids=["one", "many"])
def test_small_pack_unfolds_to_a_little_only(content: bytes, tmp_path: Path) -> None:
    with refuses("transfer-too-large"):
        index(tmp_path, content)


def test_large_objects_of_a_chain_are_not_held_together(tmp_path: Path) -> None:
    # With all of them held this would take 600 MB; each is made once.
    index(tmp_path, large_chain(20))


DAMAGED = {
    "nothing": b"",
    "too short": pack([])[:31],
    "another checksum": pack([])[:-1] + b"x",
    "another version": pack([]).replace(b"\0\2", b"\0\3", 1)[:-20],
    "fewer objects": pack([Entry(BLOB, b"x")], count=2),
    "more objects": pack([Entry(BLOB, b"x")], count=0),
    "an object that is longer": pack([Entry(BLOB, b"xyz", claimed=2)]),
    "an object that is shorter": pack([Entry(BLOB, b"xyz", claimed=4)]),
    "an object twice": pack([Entry(BLOB, b"x")] * 2),
    "an unknown kind": pack([Entry(5, b"x")]),
    "no base": pack([Entry(REF_DELTA, insert(1, b"x"), b"\1" * 20)]),
    "a base before the pack": pack([Entry(OFS_DELTA, insert(1, b"x"), 0)]),
    "a base of another size": pack([Entry(BLOB, b"x"), Entry(OFS_DELTA, insert(9, b"y"), 1)]),
    "a delta without sizes": pack([Entry(BLOB, b"x"), Entry(OFS_DELTA, b"", 1)]),
    "bases in a circle": pack(
        [
            Entry(REF_DELTA, insert(1, b"a"), name_of("blob", b"b")),
            Entry(REF_DELTA, insert(1, b"b"), name_of("blob", b"a")),
        ]
    ),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged_pack_is_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises((ValueError, IndexError, zlib.error, ApplyDeltaError)):
        index(tmp_path, content)
    assert os.listdir(tmp_path) == ["received.pack"]


def test_any_damage_to_a_pack_is_refused_or_harmless(tmp_path: Path, git: Git) -> None:
    (made,) = (repository(tmp_path, git) / ".git" / "objects" / "pack").glob("*.pack")
    sound = made.read_bytes()[:-20]
    source = random.Random(7)
    for _round in range(100):
        broken = bytearray(sound)
        for _byte in range(source.randrange(1, 4)):
            broken[source.randrange(len(broken))] = source.randrange(256)
        whole = bytes(broken[: source.choice([len(broken), source.randrange(len(broken))])])
        content = whole + hashlib.sha1(whole, usedforsecurity=False).digest()
        try:
            path = index(tmp_path, content, LIMITS._replace(most_objects=1000))
        except (ValueError, IndexError, zlib.error, ApplyDeltaError, Refused):
            continue
        git("verify-pack", path.with_suffix(".idx"), cwd=tmp_path)


@pytest.mark.parametrize(
    "beginning", [b"PACK\0\0\0\1\0\0\0\5", b"PACK\0\0\0\4\0\0\0\5", b"PACK\0\0\0\2\0\0\0"]
)
def test_no_pack_of_another_version_is_counted(beginning: bytes) -> None:
    assert count_objects(b"PACK\0\0\0\2\0\0\0\5") == 5
    with pytest.raises(ValueError, match="pack"):
        count_objects(beginning)


def test_blob_above_the_limit_is_never_handed_out(tmp_path: Path) -> None:
    below = DurableObjects(str(tmp_path))
    objects = LimitedObjects(below, most_blob_bytes=10)
    small, large = Blob.from_string(b"x" * 10), Blob.from_string(b"x" * 11)
    below.add_objects([(small, None), (large, None)])

    assert objects[small.id] == small
    assert objects.get_raw(small.id) == (Blob.type_num, b"x" * 10)
    assert large.id in objects
    for read in (objects.__getitem__, objects.get_raw):
        with refuses("oversized-object", match="takes 11 bytes, and at most 10 bytes"):
            read(large.id)


@pytest.mark.parametrize(("kind", "most"), [("tree", 4 * MIB), ("commit", MIB)])
def test_tree_has_four_megabytes_at_most_and_a_commit_one(
    store: Store, kind: str, most: int
) -> None:
    objects = LimitedObjects(store.objects, most_blob_bytes=1)
    largest, larger = (put_raw(store, kind, bytes(size)) for size in (most, most + 1))

    assert len(objects.get_raw(largest)[1]) == most
    with refuses("oversized-object", match=f"{kind} {larger.decode()} takes"):
        objects.get_raw(larger)


def test_object_that_does_not_say_how_large_it_is_is_not_handed_out(
    tmp_path: Path, git: Callable[..., str]
) -> None:
    depth = LONGEST_CHAIN + 1
    git("init", "-q", "--bare", str(tmp_path), cwd=tmp_path)
    # git takes it, and so does dulwich, which reads what is unusual.
    git("index-pack", "--stdin", cwd=tmp_path, stdin=deep_chain(depth))
    objects, last = DurableObjects(str(tmp_path / "objects")), Blob.from_string(b"%08d" % depth)
    assert objects[last.id] == last

    with refuses("damaged-object", match="does not say how large it is"):
        LimitedObjects(objects, most_blob_bytes=10).get_raw(last.id)


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
